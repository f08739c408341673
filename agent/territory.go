package main

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Territory is the part of the file tree that is the sandbox's own: its root, without what is mounted into it, what the
// kernel makes up, and what belongs to the agent.
type Territory struct {
	not     map[string]bool
	own     map[string]bool // mounts that count all the same
	devices map[uint64]bool
}

func newTerritory(config *Config, excludes []string) *Territory {
	t := &Territory{not: map[string]bool{"/proc": true, "/sys": true, "/dev": true}, own: map[string]bool{}}
	t.devices = devicesOf(append([]string{"/"}, config.Own...))
	for _, path := range mountPoints() {
		t.not[path] = true
	}
	for _, path := range config.Own {
		path = filepath.Clean(path)
		delete(t.not, path)
		t.own[path] = true
	}
	for _, path := range append(excludes, config.Baseline, config.Spool, ownProgram()) {
		if path != "" {
			t.not[filepath.Clean(path)] = true
		}
	}
	for _, address := range config.Listen {
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			t.not[filepath.Clean(path)] = true
		}
	}
	delete(t.not, "/")
	return t
}

// ownProgram is empty without /proc.
func ownProgram() string {
	path, _ := os.Readlink("/proc/self/exe")
	return path
}

// holds is for walks from the top, which never come below what is not held.
func (t *Territory) holds(path string) bool { return !t.not[path] }

// reaches is for paths from elsewhere.
func (t *Territory) reaches(path string) bool {
	for at := 0; at < len(path); {
		next := strings.IndexByte(path[at+1:], '/')
		if next < 0 {
			break
		}
		at += 1 + next
		if t.not[path[:at]] {
			return false
		}
	}
	return !t.not[path]
}

func devicesOf(paths []string) map[uint64]bool {
	devices := map[uint64]bool{}
	for _, path := range paths {
		var info syscall.Stat_t
		if syscall.Lstat(path, &info) == nil {
			devices[info.Dev] = true
		}
	}
	return devices
}

// checkDevice holds also when somebody has moved the directory of a mount meanwhile.
func (t *Territory) checkDevice(fd int, path string) error {
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil || t.devices[info.Dev] {
		return err
	}
	return fault(http.StatusUnprocessableEntity, "archive_escape", "%q lies on another file system", path)
}

// mountPoints is every place where another file system, or another part of one, begins. Without /proc there is no such
// list; a walk then still stays on the device of its directory.
func mountPoints() (points []string) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && fields[4] != "/" {
			points = append(points, unescapeMount(fields[4]))
		}
	}
	return points
}

// unescapeMount takes the octal away that stands for blanks and backslashes.
func unescapeMount(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

package main

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Entry is one name in the file tree. What could not be learned of it is in Error; the rest still holds.
type Entry struct {
	Name   Bytes   `json:"name"`
	Path   Bytes   `json:"path"`
	Type   string  `json:"type"` // file, directory, symlink, fifo, socket, device or unknown
	Size   int64   `json:"size"`
	Mode   uint32  `json:"mode"` // permission bits with setuid, setgid and sticky
	Mtime  float64 `json:"mtime"`
	UID    uint32  `json:"uid"`
	GID    uint32  `json:"gid"`
	Target Bytes   `json:"target,omitempty"`
	Broken bool    `json:"broken,omitempty"` // a link to nothing, or an entry that could not be read
	Error  string  `json:"error,omitempty"`
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "fifo"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "unknown"
}

func entryOf(path string, info fs.FileInfo) Entry {
	e := Entry{
		Name: Bytes(filepath.Base(path)), Path: Bytes(path), Type: kindOf(info.Mode()), Size: info.Size(),
		Mtime: float64(info.ModTime().UnixNano()) / 1e9,
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID, e.Mode = stat.Uid, stat.Gid, stat.Mode&0o7777
	}
	if e.Type == "symlink" {
		if target, err := os.Readlink(path); err == nil {
			e.Target = Bytes(target)
		} else {
			e.Error = err.Error()
		}
		_, err := os.Stat(path)
		e.Broken = err != nil
	}
	return e
}

// pathOf takes an absolute path as percent-encoded bytes; any byte but NUL is a valid name.
func pathOf(query url.Values, name string) (string, error) {
	path := query.Get(name)
	if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return "", badRequest("%s must be an absolute path without NUL: %q", name, path)
	}
	return path, nil
}

func (s *Server) fileStat(w http.ResponseWriter, r *http.Request) error {
	path, err := pathOf(r.URL.Query(), "path")
	if err != nil {
		return err
	}
	look := os.Lstat
	if r.URL.Query().Get("follow") == "1" {
		look = os.Stat
	}
	info, err := look(path)
	if err != nil {
		return err
	}
	return answer(w, entryOf(path, info))
}

const listBatch = 512

// fileList streams one JSON entry a line, in the directory's own order, so that a huge directory costs no memory.
func (s *Server) fileList(w http.ResponseWriter, r *http.Request) error {
	path, err := pathOf(r.URL.Query(), "path")
	if err != nil {
		return err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(listBatch)
	if err != nil && len(names) == 0 && err.Error() != "EOF" {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	lines := json.NewEncoder(patientAnswer(w))
	for len(names) > 0 {
		for _, name := range names {
			if err := lines.Encode(listed(path, name)); err != nil {
				return err
			}
		}
		names, _ = dir.Readdirnames(listBatch)
	}
	return nil
}

func listed(dir, name string) Entry {
	full := strings.TrimRight(dir, "/") + "/" + name
	info, err := os.Lstat(full)
	if err != nil {
		return Entry{Name: Bytes(name), Path: Bytes(full), Type: "unknown", Broken: true, Error: err.Error()}
	}
	return entryOf(full, info)
}

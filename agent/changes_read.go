package main

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	whiteoutRecord = "ORCHARD.whiteout"
	xattrRecord    = "SCHILY.xattr."
	xattrsMax      = 256 << 10
	clockTick      = 20 * time.Millisecond // what is changed now may carry the time of the kernel's last tick
)

// changesRead streams what has changed since the agent's boot as a tar archive, deletions as whiteouts when there is a
// baseline. What cannot be read or told is counted in the trailer X-Orchard-Skipped.
func (s *Server) changesRead(w http.ResponseWriter, r *http.Request) error {
	excludes := r.URL.Query()["exclude"]
	for _, path := range excludes {
		if !strings.HasPrefix(path, "/") {
			return badRequest("exclude must be an absolute path: %q", path)
		}
	}
	changes := &changes{land: newTerritory(s.config, excludes), since: s.started.Add(-clockTick).UnixNano()}
	if s.baseline != nil {
		var err error
		if changes.base, err = s.baseline.Read(); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Trailer", "X-Orchard-Skipped")
	w.WriteHeader(http.StatusOK)
	changes.out = &changeTar{
		archive: tar.NewWriter(patientAnswer(w)), buffer: make([]byte, fileBuffer), links: map[inode]string{},
	}
	if err := changes.run(); err != nil {
		return err
	}
	w.Header().Set("X-Orchard-Skipped", strconv.Itoa(changes.out.skipped))
	return nil
}

// changes compares the files with the baseline, line by line, or with the time of the boot.
type changes struct {
	land    *Territory
	since   int64
	base    *BaselineReader // nil: no baseline
	covered string          // what the baseline had below this needs no whiteout of its own
	out     *changeTar
}

func (c *changes) run() error {
	walk := landWalk{land: c.land, visit: c.visit, lost: c.lost}
	if err := walk.run(); err != nil {
		return err
	}
	for c.base != nil && c.base.Path != "" {
		if err := c.pass(); err != nil {
			return err
		}
	}
	return c.out.archive.Close()
}

func (c *changes) lost(path string) {
	c.land.not[path] = true // so that what the baseline had there is not taken for deleted
	c.out.skipped++
}

func (c *changes) visit(dir int, name, path string, info *syscall.Stat_t) error {
	if c.base == nil {
		if info.Ctim.Nano() < c.since {
			return nil
		}
		return c.out.add(dir, name, path, info)
	}
	for c.base.Path != "" && walkOrder(c.base.Path, path) < 0 {
		if err := c.pass(); err != nil {
			return err
		}
	}
	if c.base.Path == path {
		same := c.base.Ctime == info.Ctim.Nano()
		if info.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			c.covered = path // it may have been a directory
		}
		if err := c.base.Next(); err != nil || same {
			return err
		}
	}
	return c.out.add(dir, name, path, info)
}

// pass leaves behind a line of the baseline that the walk did not come to: the path is no more.
func (c *changes) pass() error {
	path := c.base.Path
	if err := c.base.Next(); err != nil {
		return err
	}
	if len(path) < 2 || path[0] != '/' || below(path, c.covered) || !c.land.reaches(path) {
		return nil
	}
	c.covered = path
	return c.out.remove(path)
}

type inode struct{ device, number uint64 }

// changeTar writes the archive. Names are relative to the root.
type changeTar struct {
	archive *tar.Writer
	buffer  []byte
	links   map[inode]string
	skipped int
}

func (t *changeTar) remove(path string) error {
	return t.header(&tar.Header{
		Typeflag: tar.TypeReg, Name: path[1:], PAXRecords: map[string]string{whiteoutRecord: "1"},
	})
}

// header leaves out what no archive can hold.
func (t *changeTar) header(h *tar.Header) error {
	h.Format = tar.FormatPAX
	err := t.archive.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
		t.skipped++
		return nil
	}
	return err
}

func (t *changeTar) add(dir int, name, path string, info *syscall.Stat_t) error {
	h := &tar.Header{
		Name: path[1:], Mode: int64(info.Mode & 0o7777), Uid: int(info.Uid), Gid: int(info.Gid),
		ModTime: time.Unix(info.Mtim.Unix()), PAXRecords: map[string]string{},
	}
	switch info.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		if fd, err := openat(dir, name, openDirectory, 0); err == nil {
			readXattrs(fd, h.PAXRecords)
			syscall.Close(fd)
		}
	case syscall.S_IFLNK:
		target, err := readlinkat(dir, name)
		if err != nil {
			t.skipped++
			return nil
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	case syscall.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case syscall.S_IFREG:
		return t.file(dir, name, h)
	case syscall.S_IFSOCK:
		return nil // it is of no use without its process
	default:
		t.skipped++
		return nil
	}
	return t.header(h)
}

func (t *changeTar) file(dir int, name string, h *tar.Header) error {
	fd, err := openat(dir, name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.skipped++
		return nil
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil || info.Mode&syscall.S_IFMT != syscall.S_IFREG {
		t.skipped++
		return nil
	}
	id := inode{info.Dev, info.Ino}
	if first, ok := t.links[id]; ok {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return t.header(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size
	readXattrs(fd, h.PAXRecords)
	skipped := t.skipped
	if err := t.header(h); err != nil || t.skipped > skipped {
		return err
	}
	if info.Nlink > 1 {
		t.links[id] = h.Name
	}
	content := &steadyReader{file: file, left: info.Size}
	_, err = io.CopyBuffer(struct{ io.Writer }{t.archive}, content, t.buffer)
	if content.padded {
		t.skipped++
	}
	return err
}

// travels tells which attributes are the sandbox's own; an overlay's marks and a security module's labels are not.
func travels(xattr string) bool {
	return strings.HasPrefix(xattr, "user.") || xattr == "security.capability" ||
		xattr == "system.posix_acl_access" || xattr == "system.posix_acl_default"
}

func readXattrs(fd int, into map[string]string) {
	names, err := listXattrs(fd)
	if err != nil {
		return
	}
	total := 0
	for _, name := range names {
		if !travels(name) || strings.Contains(name, "=") {
			continue
		}
		value, err := getXattr(fd, name)
		if total += len(name) + len(value); err == nil && total <= xattrsMax {
			into[xattrRecord+name] = string(value)
		}
	}
}

package main

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"syscall"
	"unsafe"
)

const (
	atRemoveDir  = 0x200
	specialModes = syscall.S_ISUID | syscall.S_ISGID
)

// changesApply makes the changes of another sandbox here. The archive may come from an adversary: each step is taken
// from an open directory without following a link, and nothing is touched that is not the sandbox's own.
func (s *Server) changesApply(w http.ResponseWriter, r *http.Request) error {
	root, err := syscall.Open("/", openDirectory, 0)
	if err != nil {
		return err
	}
	body := patientBody(w, r)
	a := &application{land: newTerritory(s.config, nil), root: root, parentFd: -1, buffer: make([]byte, fileBuffer)}
	defer a.close()
	if err := a.all(tar.NewReader(body)); err != nil {
		return err
	}
	if _, err := copyFile(io.Discard, body, -1); err != nil { // the padding after the archive
		return err
	}
	return answer(w, map[string]int64{
		"entries": a.entries, "removed": a.removed, "bytes": a.bytes, "unowned": a.unowned,
	})
}

type application struct {
	land     *Territory
	root     int
	parent   string // of the entry before, open as parentFd
	parentFd int
	buffer   []byte
	dirs     []*tar.Header // whose attributes come last: entries made in them change their times
	entries  int64
	removed  int64
	bytes    int64
	unowned  int64 // entries whose owner this agent may not give them
}

func (a *application) close() { closeFds(a.parentFd, a.root) }

func (a *application) all(archive *tar.Reader) error {
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return invalidArchive(err)
		}
		if err := a.entry(header, archive); err != nil {
			return invalidArchive(inFault("restore", header.Name, err))
		}
	}
	for i := len(a.dirs) - 1; i >= 0; i-- {
		if err := a.finishDir(a.dirs[i]); err != nil {
			return inFault("restore", a.dirs[i].Name, err)
		}
	}
	return nil
}

// place gives the absolute path of a name of the archive, which must be the sandbox's own.
func (a *application) place(name string) (string, error) {
	clean := path.Clean(name)
	if !inside(name) || clean == "." || strings.Contains("/"+name+"/", "/../") || strings.IndexByte(name, 0) >= 0 {
		return "", fault(http.StatusUnprocessableEntity, "archive_escape", "the entry %q leaves the root", name)
	}
	if depth(clean) > maxDepth {
		return "", fault(http.StatusUnprocessableEntity, "archive_invalid", "an entry lies deeper than %d directories", maxDepth)
	}
	if full := "/" + clean; a.land.reaches(full) {
		return full, nil
	}
	return "", fault(http.StatusUnprocessableEntity, "archive_escape",
		"the entry %q is not the sandbox's own: something is mounted there, or it is the agent's", name)
}

// enter opens the directory in which the path lies. Without make, ENOENT says that there is none.
func (a *application) enter(full string, make bool) (dir int, name string, err error) {
	parent, name := path.Split(full)
	parent = path.Clean(parent)
	if parent == a.parent && a.parentFd >= 0 {
		return a.parentFd, name, nil
	}
	closeFds(a.parentFd)
	a.parent, a.parentFd = "", -1
	fd, err := openat(a.root, ".", openDirectory, 0)
	if err != nil {
		return -1, "", err
	}
	for _, step := range strings.FieldsFunc(parent, func(r rune) bool { return r == '/' }) {
		next, err := openat(fd, step, openDirectory, 0)
		if err == syscall.ENOENT && make {
			if err = syscall.Mkdirat(fd, step, 0o755); err == nil || err == syscall.EEXIST {
				next, err = openat(fd, step, openDirectory, 0)
			}
		}
		closeFds(fd)
		if err == syscall.ELOOP || err == syscall.ENOTDIR {
			return -1, "", fault(http.StatusUnprocessableEntity, "archive_escape", "%q in the way to %q is no directory here", step, full)
		}
		if err != nil {
			return -1, "", err
		}
		fd = next
	}
	if err := a.land.checkDevice(fd, full); err != nil {
		closeFds(fd)
		return -1, "", err
	}
	a.parent, a.parentFd = parent, fd
	return fd, name, nil
}

func (a *application) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	full, err := a.place(h.Name)
	if err != nil {
		return err
	}
	if h.PAXRecords[whiteoutRecord] == "1" {
		return a.whiteout(full)
	}
	dir, name, err := a.enter(full, true)
	if err != nil {
		return err
	}
	a.entries++
	if h.Typeflag == tar.TypeDir {
		a.dirs = append(a.dirs, h)
		return a.directory(dir, name, full)
	}
	if err := a.remove(dir, name, full, 0); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return a.file(dir, name, h, content)
	case tar.TypeSymlink:
		err = symlinkat(h.Linkname, dir, name)
	case tar.TypeFifo:
		err = syscall.Mknodat(dir, name, syscall.S_IFIFO|uint32(h.Mode&0o777), 0)
	case tar.TypeLink:
		return a.link(h, full)
	default:
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "%q is neither file, directory, link nor pipe", h.Name)
	}
	if err != nil {
		return err
	}
	a.own(syscall.Fchownat(dir, name, h.Uid, h.Gid, atSymlinkNofollow))
	return utimes(dir, name, timesOf(h), atSymlinkNofollow)
}

func (a *application) whiteout(full string) error {
	dir, name, err := a.enter(full, false)
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	a.removed++
	return a.remove(dir, name, full, 0)
}

// remove takes away whatever has the name; fine when nothing has. It does not reach into what is not the sandbox's own.
func (a *application) remove(dir int, name, full string, deep int) error {
	if !a.land.holds(full) {
		return fault(http.StatusConflict, "directory_not_empty", "something is mounted at %q, or it is the agent's", full)
	}
	err := unlinkat(dir, name, 0)
	if err == nil || err == syscall.ENOENT {
		return nil
	}
	if err != syscall.EISDIR && err != syscall.EPERM {
		return err
	}
	if deep > maxDepth {
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "what is to be removed lies deeper than %d directories", maxDepth)
	}
	fd, opened := openat(dir, name, openDirectory, 0)
	if opened != nil {
		return err
	}
	entries, err := readEntries(fd)
	for _, entry := range entries {
		if err == nil {
			err = a.remove(fd, entry.name, full+"/"+entry.name, deep+1)
		}
	}
	syscall.Close(fd)
	if err != nil {
		return err
	}
	return unlinkat(dir, name, atRemoveDir)
}

func unlinkat(dir int, name string, flags int) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags))
	return call(errno)
}

func (a *application) directory(dir int, name, full string) error {
	info, err := statat(dir, name)
	if err == nil && info.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return nil
	}
	if err := a.remove(dir, name, full, 0); err != nil {
		return err
	}
	return syscall.Mkdirat(dir, name, 0o700)
}

func (a *application) finishDir(h *tar.Header) error {
	full, err := a.place(h.Name)
	if err != nil {
		return err
	}
	dir, name, err := a.enter(full, false)
	if err != nil {
		return err
	}
	fd, err := openat(dir, name, openDirectory, 0)
	if err == syscall.ENOTDIR || err == syscall.ELOOP || err == syscall.ENOENT {
		return nil // a later entry of the archive has replaced it
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	err = a.dress(fd, h)
	var info syscall.Stat_t
	if errors.Is(err, syscall.EPERM) && syscall.Fstat(fd, &info) == nil && int(info.Uid) != syscall.Geteuid() {
		return nil // it was there before, such as /tmp: only what is in it is the user's own to change
	}
	return err
}

func (a *application) file(dir int, name string, h *tar.Header, content io.Reader) error {
	const flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	fd, err := openat(dir, name, flags, 0o600)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := a.fill(fd, content); err != nil {
		return err
	}
	return a.dress(fd, h)
}

// fill leaves holes where there are only zeros.
func (a *application) fill(fd int, content io.Reader) error {
	size := int64(0)
	for {
		n, err := io.ReadFull(content, a.buffer)
		if n > 0 && !zeros(a.buffer[:n]) {
			if wrote := writeAt(fd, a.buffer[:n], size); wrote != nil {
				return wrote
			}
		}
		size += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF && n < len(a.buffer) {
			if cut := a.whole(content); cut != nil {
				return cut
			}
			a.bytes += size
			return syscall.Ftruncate(fd, size)
		}
		if err != nil {
			return err
		}
	}
}

// whole tells a file's end from an archive's that is cut: only the first is answered with io.EOF.
func (a *application) whole(content io.Reader) error {
	var one [1]byte
	if _, err := content.Read(one[:]); err != io.EOF {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func writeAt(fd int, data []byte, at int64) error {
	for len(data) > 0 {
		n, err := syscall.Pwrite(fd, data, at)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, at = data[n:], at+int64(n)
	}
	return nil
}

func zeros(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

func (a *application) link(h *tar.Header, full string) error {
	target, err := a.place(h.Linkname)
	if err != nil {
		return err
	}
	from, name, err := a.enter(target, false)
	if err != nil {
		return err
	}
	info, err := statat(from, name)
	if err != nil {
		return err
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "%q is a hard link to what is no file", h.Name)
	}
	held, err := openat(from, ".", openDirectory, 0) // entering the other directory closes this one
	if err != nil {
		return err
	}
	defer syscall.Close(held)
	to, as, err := a.enter(full, true)
	if err != nil {
		return err
	}
	return linkat(held, name, to, as)
}

// own notes what only root may do.
func (a *application) own(err error) bool {
	if err != nil {
		a.unowned++
	}
	return err == nil
}

// dress gives owner, mode, attributes and times, in the order in which none undoes another. With an owner that could
// not be given go the bits that act in the owner's name.
func (a *application) dress(fd int, h *tar.Header) error {
	mode := uint32(h.Mode & 0o7777)
	if !a.own(syscall.Fchown(fd, h.Uid, h.Gid)) {
		mode &^= specialModes
	}
	if err := syscall.Fchmod(fd, mode); err != nil {
		return err
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrRecord)
		if !ok || !travels(name) {
			continue
		}
		if err := setXattr(fd, name, []byte(value)); err != nil && !bearable(err) {
			return err
		}
	}
	return utimes(fd, "", timesOf(h), 0)
}

// bearable tells that an attribute is not for this agent, or this file system, to give.
func bearable(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EINVAL)
}

func timesOf(h *tar.Header) *syscall.Stat_t {
	at := syscall.NsecToTimespec(h.ModTime.UnixNano())
	return &syscall.Stat_t{Atim: at, Mtim: at}
}

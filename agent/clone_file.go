package main

import (
	"os"
	"strconv"
	"sync"
	"syscall"
)

const (
	ficlone      = 0x40049409
	seekData     = 3
	seekHole     = 4
	clonePiece   = 1 << 30
	cloneBuffer  = 1 << 20
	openRegular  = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC | syscall.O_NOATIME
	createAlways = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
)

// file copies a regular file; one that has gone or become something else is counted, never followed or waited for.
func (c *cloner) file(from, to int, name string) error {
	source, err := openat(from, name, openRegular, 0)
	if gone(err) {
		c.changed.Add(1)
		return nil
	}
	if err != nil {
		return inFault("open", name, err)
	}
	defer syscall.Close(source)
	var info syscall.Stat_t
	if err := syscall.Fstat(source, &info); err != nil {
		return inFault("stat", name, err)
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFREG {
		c.changed.Add(1)
		return nil
	}
	c.files.Add(1)
	if info.Nlink > 1 {
		return inFault("copy", name, c.linked(source, &info, to, name))
	}
	return inFault("copy", name, c.content(source, &info, to, name))
}

// content makes the copy with everything that belongs to it.
func (c *cloner) content(source int, info *syscall.Stat_t, to int, name string) error {
	target, err := openat(to, name, createAlways, info.Mode&0o777)
	if err != nil {
		return err
	}
	defer syscall.Close(target)
	c.bytes.Add(info.Blocks * 512)
	if err := c.data(source, target, info); err != nil {
		return err
	}
	if err := copyXattrs(source, target); err != nil {
		return err
	}
	return copyOwnerModeTimes(target, info)
}

// data shares the blocks where the file system can, else lets the kernel copy them; holes stay holes.
func (c *cloner) data(source, target int, info *syscall.Stat_t) error {
	if info.Size == 0 {
		return nil
	}
	if !c.noReflink.Load() {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(target), ficlone, uintptr(source)); errno == 0 {
			return nil
		} else if errno == syscall.ENOSPC || errno == syscall.EDQUOT {
			return errno
		}
		c.noReflink.Store(true)
	}
	if info.Blocks*512 >= info.Size {
		return copyRange(source, target, 0, info.Size)
	}
	return copySparse(source, target, info.Size)
}

func copySparse(source, target int, size int64) error {
	if err := syscall.Ftruncate(target, size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		data, err := syscall.Seek(source, at, seekData)
		if err == syscall.ENXIO {
			return nil
		}
		if err != nil {
			return err
		}
		hole, err := syscall.Seek(source, data, seekHole)
		if err != nil {
			return err
		}
		if err := copyRange(source, target, data, min(hole, size)-data); err != nil {
			return err
		}
		at = hole
	}
	return nil
}

// copyRange ends early, without an error, where a file has become shorter.
func copyRange(source, target int, at, length int64) error {
	in, out := at, at
	for length > 0 {
		n, err := copyFileRange(source, &in, target, &out, int(min(length, clonePiece)))
		switch err {
		case nil:
			if n == 0 {
				return nil
			}
			length -= int64(n)
		case syscall.EINTR, syscall.EAGAIN:
		case syscall.ENOSYS, syscall.EXDEV, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.EPERM:
			return copyByHand(source, target, in, length)
		default:
			return err
		}
	}
	return nil
}

func copyByHand(source, target int, at, length int64) error {
	buffer := make([]byte, min(length, cloneBuffer))
	for length > 0 {
		n, err := syscall.Pread(source, buffer[:min(length, int64(len(buffer)))], at)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		for done := 0; done < n; {
			m, err := syscall.Pwrite(target, buffer[done:n], at+int64(done))
			if err != nil {
				return err
			}
			done += m
		}
		at, length = at+int64(n), length-int64(n)
	}
	return nil
}

// cloneLinks knows the first copy of each file with several names. The first copies have a name in a directory of their
// own meanwhile, so that a later one can be linked however deep the first lies.
type cloneLinks struct {
	lock sync.Mutex
	path string
	dir  int
	made map[uint64]bool
}

func (l *cloneLinks) reset(path string) { l.path, l.dir, l.made = path, -1, map[uint64]bool{} }

func (l *cloneLinks) remove() {
	if l.dir >= 0 {
		syscall.Close(l.dir)
		_ = os.RemoveAll(l.path)
	}
}

func (l *cloneLinks) open() error {
	if l.dir >= 0 {
		return nil
	}
	err := syscall.Mkdir(l.path, 0o700)
	if err == nil {
		l.dir, err = syscall.Open(l.path, openDirectory, 0)
	}
	return err
}

// linked copies the file when it is met first, and links to that copy after.
func (c *cloner) linked(source int, info *syscall.Stat_t, to int, name string) error {
	c.links.lock.Lock()
	defer c.links.lock.Unlock()
	if err := c.links.open(); err != nil {
		return err
	}
	first := strconv.FormatUint(info.Ino, 10)
	if c.links.made[info.Ino] {
		if err := linkat(c.links.dir, first, to, name); err != syscall.EMLINK {
			return err
		}
		return c.content(source, info, to, name)
	}
	if err := c.content(source, info, to, name); err != nil {
		return err
	}
	c.links.made[info.Ino] = true
	return linkat(to, name, c.links.dir, first)
}

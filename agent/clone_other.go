package main

import (
	"errors"
	"syscall"
)

// other copies what is neither file nor directory. A socket or a named pipe is made anew, and nobody waits at it. A
// character device 0/0 is an overlay's mark for a deletion, which anyone may make; other devices nobody here may.
func (c *cloner) other(from, to int, name string) error {
	info, err := statat(from, name)
	if gone(err) {
		c.changed.Add(1)
		return nil
	}
	if err != nil {
		return inFault("stat", name, err)
	}
	switch kind := info.Mode & syscall.S_IFMT; {
	case kind == syscall.S_IFLNK:
		err = copyLink(from, to, name)
	case kind == syscall.S_IFIFO || kind == syscall.S_IFSOCK || kind == syscall.S_IFCHR && info.Rdev == 0:
		err = syscall.Mknodat(to, name, info.Mode, 0)
	case kind == syscall.S_IFREG || kind == syscall.S_IFDIR:
		c.changed.Add(1)
		return nil
	default:
		c.skipped.Add(1)
		return nil
	}
	if gone(err) {
		c.changed.Add(1)
		return nil
	}
	if err == nil {
		c.files.Add(1)
		c.bytes.Add(info.Blocks * 512)
		err = copyOwnerTimesAt(to, name, &info)
	}
	return inFault("copy", name, err)
}

func copyLink(from, to int, name string) error {
	target, err := readlinkat(from, name)
	if err != nil {
		return err
	}
	return symlinkat(target, to, name)
}

// copyOwnerModeTimes comes last: writing and changing the owner clear bits of the mode.
func copyOwnerModeTimes(fd int, info *syscall.Stat_t) error {
	var now syscall.Stat_t
	if err := syscall.Fstat(fd, &now); err != nil {
		return err
	}
	if now.Uid != info.Uid || now.Gid != info.Gid {
		if err := syscall.Fchown(fd, int(info.Uid), int(info.Gid)); err != nil {
			return err
		}
		now.Mode = ^info.Mode
	}
	if now.Mode&0o7777 != info.Mode&0o7777 {
		if err := syscall.Fchmod(fd, info.Mode&0o7777); err != nil {
			return err
		}
	}
	return utimes(fd, "", info, 0)
}

func copyOwnerTimesAt(dir int, name string, info *syscall.Stat_t) error {
	now, err := statat(dir, name)
	if err != nil {
		return err
	}
	if now.Uid != info.Uid || now.Gid != info.Gid {
		if err := syscall.Fchownat(dir, name, int(info.Uid), int(info.Gid), atSymlinkNofollow); err != nil {
			return err
		}
	}
	return utimes(dir, name, info, atSymlinkNofollow)
}

// copyXattrs copies the overlay's own marks too: a directory that hides what lies below it is marked so. What this
// process may not set, as a security module's label, is the file system's to give.
func copyXattrs(source, target int) error {
	names, err := listXattrs(source)
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		value, err := getXattr(source, name)
		if err == nil {
			err = setXattr(target, name, value)
		}
		if err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENODATA) {
			return err
		}
	}
	return nil
}

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

const (
	atSymlinkNofollow = 0x100
	openDirectory     = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	direntHead        = 19 // inode 8, offset 8, length 2, type 1
	nameBytesMax      = 100
)

// dirent is an entry of a directory as the kernel lists it.
type dirent struct {
	name string
	kind uint8
}

// readEntries reads the whole directory, without `.` and `..`.
func readEntries(fd int) ([]dirent, error) {
	buffer := make([]byte, 64<<10)
	var found []dirent
	for {
		n, err := syscall.ReadDirent(fd, buffer)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a directory: %w", err)
		}
		if n <= 0 {
			return found, nil
		}
		for rest := buffer[:n]; len(rest) > direntHead; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			name, _, _ := bytes.Cut(rest[direntHead:length], []byte{0})
			if text := string(name); text != "." && text != ".." {
				found = append(found, dirent{text, rest[18]})
			}
			rest = rest[length:]
		}
	}
}

// kind asks again where the file system does not tell.
func (c *cloner) kind(dir int, entry dirent) uint8 {
	if entry.kind != syscall.DT_UNKNOWN {
		return entry.kind
	}
	info, err := statat(dir, entry.name)
	if err != nil {
		return syscall.DT_UNKNOWN
	}
	return uint8(info.Mode & syscall.S_IFMT >> 12)
}

// gone tells that a name has vanished or stands for something else: for a link where there was none, above all.
func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENXIO)
}

// inFault says what could not be done with what; nil for nil.
func inFault(what, name string, err error) error {
	if err == nil {
		return nil
	}
	if len(name) > nameBytesMax {
		name = name[:nameBytesMax]
	}
	return fmt.Errorf("cannot %s %q: %w", what, name, err)
}

func closeFds(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
}

// openat retries without O_NOATIME, which only an owner may ask for.
func openat(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := syscall.Openat(dir, name, flags, mode)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EPERM && flags&syscall.O_NOATIME != 0:
			flags &^= syscall.O_NOATIME
		default:
			return fd, err
		}
	}
}

func call(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func statat(dir int, name string) (info syscall.Stat_t, err error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return info, err
	}
	_, _, errno := syscall.Syscall6(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&info)), atSymlinkNofollow, 0, 0)
	return info, call(errno)
}

func utimes(dir int, name string, info *syscall.Stat_t, flags int) error {
	times := [2]syscall.Timespec{info.Atim, info.Mtim}
	var p *byte
	if name != "" {
		var err error
		if p, err = syscall.BytePtrFromString(name); err != nil {
			return err
		}
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_UTIMENSAT, uintptr(dir), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&times)), uintptr(flags), 0, 0)
	return call(errno)
}

func linkat(fromDir int, from string, toDir int, to string) error {
	p, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	q, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_LINKAT, uintptr(fromDir), uintptr(unsafe.Pointer(p)),
		uintptr(toDir), uintptr(unsafe.Pointer(q)), 0, 0)
	return call(errno)
}

func symlinkat(target string, dir int, name string) error {
	p, err := syscall.BytePtrFromString(target)
	if err != nil {
		return err
	}
	q, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(p)), uintptr(dir), uintptr(unsafe.Pointer(q)))
	return call(errno)
}

func readlinkat(dir int, name string) (string, error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return "", err
	}
	buffer := make([]byte, syscall.PathMax+1)
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0, 0)
	if errno != 0 {
		return "", call(errno)
	}
	return string(buffer[:n]), nil
}

func copyFileRange(source int, in *int64, target int, out *int64, length int) (int, error) {
	n, _, errno := syscall.Syscall6(sysCopyFileRange, uintptr(source), uintptr(unsafe.Pointer(in)), uintptr(target),
		uintptr(unsafe.Pointer(out)), uintptr(length), 0)
	return int(n), call(errno)
}

package main

import (
	"errors"
	"strings"
	"syscall"
	"unsafe"
)

const xattrBytesMax = 64 << 10 // the kernel's own limit, for a list of names as for a value

// listXattrs is empty where the file system has none.
func listXattrs(fd int) ([]string, error) {
	var few [1024]byte
	n, err := xattrCall(syscall.SYS_FLISTXATTR, fd, "", few[:])
	list := few[:max(n, 0)]
	if errors.Is(err, syscall.ERANGE) {
		many := make([]byte, xattrBytesMax)
		n, err = xattrCall(syscall.SYS_FLISTXATTR, fd, "", many)
		list = many[:max(n, 0)]
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || err == nil && n == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00"), err
}

func getXattr(fd int, name string) ([]byte, error) {
	value := make([]byte, xattrBytesMax)
	n, err := xattrCall(syscall.SYS_FGETXATTR, fd, name, value)
	return value[:max(n, 0)], err
}

func setXattr(fd int, name string, value []byte) error {
	_, err := xattrCall(syscall.SYS_FSETXATTR, fd, name, value)
	return err
}

func xattrCall(number uintptr, fd int, name string, buffer []byte) (int, error) {
	data := unsafe.Pointer(unsafe.SliceData(buffer))
	if number == syscall.SYS_FLISTXATTR {
		n, _, errno := syscall.Syscall(number, uintptr(fd), uintptr(data), uintptr(len(buffer)))
		return int(n), call(errno)
	}
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return 0, err
	}
	n, _, errno := syscall.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(p)), uintptr(data), uintptr(len(buffer)), 0, 0)
	return int(n), call(errno)
}

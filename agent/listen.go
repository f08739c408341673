package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const unixPathMax = 107 // sockaddr_un holds 108 bytes with the NUL

// listenOn takes "unix:/path", "tcp:host:port" or "fd:number", a listening socket that the provider has made.
//
// An inherited socket has no name that the sandbox's own programs could see, remove or replace.
// A Unix socket appears at its path only when it takes connections: it is bound under another name and renamed. It
// belongs to the owner of its directory where that can be done: a driver that is not root made the directory.
func listenOn(address string) (net.Listener, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch kind {
	case "tcp":
		return net.Listen("tcp", rest)
	case "unix":
		return listenUnix(rest)
	case "fd":
		return listenInherited(rest)
	}
	return nil, fmt.Errorf("listen address %q must begin with unix:, tcp: or fd:", address)
}

func listenInherited(number string) (net.Listener, error) {
	fd, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("no such file descriptor: %q", number)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	return net.FileListener(file)
}

func listenUnix(path string) (net.Listener, error) {
	dir, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	early := path + ".new"
	bindTo := early
	if len(early) > unixPathMax {
		bindTo = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(early))
	}
	_ = os.Remove(early)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: bindTo, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(early, 0o600); err != nil {
		return nil, err
	}
	giveToOwnerOf(dir, early)
	return listener, os.Rename(early, path)
}

func giveToOwnerOf(dir *os.File, path string) {
	if info, err := dir.Stat(); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
			_ = os.Lchown(path, int(owner.Uid), int(owner.Gid))
		}
	}
}

package main

import (
	"net"
	"os"
	"syscall"
	"unsafe"
)

const (
	prSetDumpable       = 4
	prCapbsetDrop       = 24
	prSetChildSubreaper = 36
	capSysPtrace        = 19
	sysCloseRange       = 436
	closeRangeCloexec   = 4
)

func prctl(option, argument uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, option, argument, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// harden keeps the token from the commands: none may read this process's memory or files, and none inherits a file.
// CAP_SYS_PTRACE would see through that, so it leaves the bounding set that commands are born with.
func harden() error {
	if err := prctl(prSetDumpable, 0); err != nil {
		return err
	}
	_, _, _ = syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prCapbsetDrop, capSysPtrace, 0, 0, 0, 0)
	_, _, _ = syscall.Syscall(sysCloseRange, 3, ^uintptr(0)>>32, closeRangeCloexec)
	if os.Getpid() == 1 {
		return nil
	}
	return prctl(prSetChildSubreaper, 1)
}

// raiseLoopback brings lo up in a fresh network namespace, where the agent may.
func raiseLoopback() {
	lo, err := net.InterfaceByName("lo")
	if err != nil || lo.Flags&net.FlagUp != 0 {
		return
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	var request struct {
		name  [16]byte
		flags uint16
		rest  [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
}

package main

import (
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	prSetDumpable       = 4
	prCapbsetDrop       = 24
	prSetChildSubreaper = 36
	capSysPtrace        = 19
	capVersion3         = 0x20080522
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
// CAP_SYS_PTRACE would see through that, so it leaves the sets that commands are born with.
func harden() error {
	if err := prctl(prSetDumpable, 0); err != nil {
		return err
	}
	_, _, _ = syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prCapbsetDrop, capSysPtrace, 0, 0, 0, 0)
	dropInheritable(capSysPtrace)
	_, _, _ = syscall.Syscall(sysCloseRange, 3, ^uintptr(0)>>32, closeRangeCloexec)
	if os.Getpid() == 1 {
		return nil
	}
	return prctl(prSetChildSubreaper, 1)
}

type capHeader struct {
	version uint32
	pid     int32
}

type capData struct{ effective, permitted, inheritable uint32 }

// dropInheritable also lowers the ambient capability, which the kernel keeps within the inheritable ones.
func dropInheritable(number uint) {
	header := capHeader{version: capVersion3}
	var data [2]capData
	at, to := uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0]))
	if _, _, errno := syscall.Syscall(syscall.SYS_CAPGET, at, to, 0); errno != 0 {
		return
	}
	data[number/32].inheritable &^= 1 << (number % 32)
	_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_CAPSET, at, to, 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
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

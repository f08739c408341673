package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Proc is one line of the process table. start is in clock ticks since boot.
type Proc struct {
	pid, parent, group, session int
	start                       uint64
	zombie                      bool
}

const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on

// processes reads the whole table; without /proc it is empty.
func processes() []Proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []Proc
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProc(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

func readProc(pid int) (Proc, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(text, ')') // the command name may hold blanks and brackets
	if err != nil || end < 0 {
		return Proc{}, false
	}
	f := bytes.Fields(text[end+1:])
	if len(f) < 20 {
		return Proc{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n }
	start, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return Proc{pid, number(1), number(2), number(3), start, f[0][0] == 'Z' || f[0][0] == 'X'}, true
}

// runMark returns the run id in the process's environment; empty when there is none or it cannot be read.
func runMark(pid int) (id string) {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for _, pair := range bytes.Split(environ, []byte{0}) {
		if rest, ok := bytes.CutPrefix(pair, []byte(runMarkName+"=")); ok {
			return string(rest)
		}
	}
	return ""
}

// bootTicks is now, in the unit and on the clock of Proc.start.
func bootTicks() uint64 {
	var now syscall.Timespec
	const clockBoottime = 7
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Nano() / (1e9 / ticksPerSecond))
}

const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// kill sends SIGKILL to exactly the process that was seen, never to a later owner of its pid.
func (p Proc) kill() {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(p.pid), 0, 0)
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		return
	}
	if errno != 0 {
		return
	}
	defer syscall.Close(int(fd))
	if now, ok := readProc(p.pid); ok && now.start == p.start {
		_, _, _ = syscall.Syscall6(sysPidfdSendSignal, fd, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	}
}

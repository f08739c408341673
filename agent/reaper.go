package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"unsafe"
)

// Reaper is the only caller of wait: it collects commands and adopted orphans alike.
//
// A zombie is first peeked at (WNOWAIT) and collected only under the lock that Spawn and Signal hold. So an exit
// is never lost before its registration, and a signal never reaches a recycled pid.
type Reaper struct {
	mu       sync.Mutex
	watched  map[int]chan syscall.WaitStatus
	orphans  int64
	children chan os.Signal
}

func newReaper() *Reaper {
	r := &Reaper{watched: map[int]chan syscall.WaitStatus{}, children: make(chan os.Signal, 1)}
	signal.Notify(r.children, syscall.SIGCHLD)
	go r.loop()
	return r
}

// Spawn runs start under the lock; the channel delivers the exit status once.
func (r *Reaper) Spawn(start func() (int, error)) (int, <-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := start()
	if err != nil {
		return 0, nil, err
	}
	exited := make(chan syscall.WaitStatus, 1)
	r.watched[pid] = exited
	return pid, exited, nil
}

// Signal sends to the command's process group, or to the process alone; false when it is already gone.
func (r *Reaper) Signal(pid int, sig syscall.Signal, group bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, alive := r.watched[pid]; !alive {
		return false
	}
	if group {
		return syscall.Kill(-pid, sig) == nil
	}
	return syscall.Kill(pid, sig) == nil
}

// SignalGroupOf sends to a process group of the session that a command leads; false when either is gone.
func (r *Reaper) SignalGroupOf(leader, group int, sig syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, alive := r.watched[leader]; !alive {
		return false
	}
	return syscall.Kill(-group, sig) == nil
}

// Watched tells whether pid is the leader of a command that has not been collected.
func (r *Reaper) Watched(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, alive := r.watched[pid]
	return alive
}

// Orphans is how many adopted processes were collected so far.
func (r *Reaper) Orphans() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orphans
}

func (r *Reaper) loop() {
	for range r.children {
		for pid := peekZombie(); pid > 0; pid = peekZombie() {
			r.collect(pid)
		}
	}
}

func (r *Reaper) collect(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	if err != nil || got != pid {
		return
	}
	if exited, ok := r.watched[pid]; ok {
		delete(r.watched, pid)
		exited <- status
		return
	}
	r.orphans++
}

const (
	waitAll     = 0
	waitExited  = 0x4
	waitNoReap  = 0x1000000
	siginfoPid  = 16 // offset of si_pid in siginfo_t on 64-bit Linux
	siginfoSize = 128
)

func peekZombie() int {
	var info [siginfoSize]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, waitAll, 0, uintptr(unsafe.Pointer(&info[0])),
			waitExited|waitNoReap|syscall.WNOHANG, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return 0
		}
		return int(*(*int32)(unsafe.Pointer(&info[siginfoPid])))
	}
}

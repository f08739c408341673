package main

import (
	"sync"
	"syscall"
	"testing"
)

func TestReaperDeliversEveryExit(t *testing.T) {
	reaper := newReaper()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				pid, exited, err := reaper.Spawn(func() (int, error) {
					return syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 7"}, &syscall.ProcAttr{})
				})
				if err != nil {
					t.Error(err)
					return
				}
				if status := <-exited; status.ExitStatus() != 7 {
					t.Errorf("pid %d: %v", pid, status)
				}
				if reaper.Signal(pid, 0, false) {
					t.Error("a collected process took a signal")
				}
			}
		})
	}
	all.Wait()
}

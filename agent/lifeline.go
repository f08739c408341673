package main

import (
	"io"
	"os"
)

// holdLifeline calls stop when the other end of a pipe is closed, which the kernel does when the driver dies. It is
// for agents that no namespace ends: with them, all they started would live on.
func holdLifeline(fd int, stop func()) {
	if fd < 0 {
		return
	}
	go func() {
		pipe := os.NewFile(uintptr(fd), "lifeline")
		_, _ = io.Copy(io.Discard, pipe)
		stop()
	}()
}

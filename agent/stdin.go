package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// inputEnd is where input goes: a pipe, or a terminal.
type inputEnd interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// Stdin is the write end of a command's input. Writes carry their offset, so a repeated one adds nothing twice.
type Stdin struct {
	mu       sync.Mutex
	pipe     inputEnd
	received atomic.Int64
	closed   bool
}

func newStdin() (*Stdin, *os.File, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	_ = syscall.SetNonblock(ends[1], true)
	return &Stdin{pipe: os.NewFile(uintptr(ends[1]), "stdin")}, os.NewFile(uintptr(ends[0]), "stdin"), nil
}

// Write copies body to the command from offset on, with the command's own back pressure.
func (s *Stdin) Write(ctx context.Context, offset int64, body io.Reader) error {
	return s.write(ctx, offset, body)
}

// write takes an offset of -1 for the end.
func (s *Stdin) write(ctx context.Context, offset int64, body io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.gone()
	}
	received := s.received.Load()
	if offset < 0 {
		offset = received
	}
	if offset > received {
		return fault(http.StatusConflict, "stdin_gap", "offset %d is past the %d bytes received", offset, received)
	}
	if _, err := io.CopyN(io.Discard, body, received-offset); err != nil {
		if err == io.EOF {
			return nil
		}
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = s.pipe.SetWriteDeadline(time.Now())
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // or it would interrupt the next write
			_ = s.pipe.SetWriteDeadline(time.Time{})
		}
	}()
	n, err := io.Copy(struct{ io.Writer }{s.pipe}, body)
	s.received.Add(n)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) || errors.Is(err, os.ErrClosed) {
		return s.gone()
	}
	return err
}

// Type adds to what was received so far, whoever gave that.
func (s *Stdin) Type(ctx context.Context, keys []byte) error {
	return s.write(ctx, -1, bytes.NewReader(keys))
}

func (s *Stdin) gone() error {
	return fault(http.StatusConflict, "stdin_closed", "the command no longer reads its input")
}

// End gives the command its end of file; it waits for a write in progress.
func (s *Stdin) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if terminal, ok := s.pipe.(*TerminalInput); ok {
		terminal.EndInput()
		return
	}
	_ = s.pipe.Close()
}

// Abandon closes at once, also under a blocked write: the command has exited.
func (s *Stdin) Abandon() {
	_ = s.pipe.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// Received is how many bytes the command was given.
func (s *Stdin) Received() int64 {
	if s == nil {
		return 0
	}
	return s.received.Load()
}

package main

import (
	"os"
	"sync"
	"syscall"
)

const (
	pipeCapacity     = 64 << 10
	terminalCapacity = 256 << 10 // 64 KiB in flight, in either direction, and what the line discipline holds
)

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, pipeCapacity); return &b }}

// Sink drains one output pipe of a command into a spool.
//
// It freezes when the command itself has exited: what a surviving background child says afterwards is read, so
// that it neither blocks nor dies of SIGPIPE, and dropped, so that a result never changes.
type Sink struct {
	*Spool
	mu      sync.Mutex
	pipe    *os.File
	tail    int // the most that pipe can hold
	frozen  bool
	changed chan struct{}
}

func newSink(limit int64, dir *SpoolDir) *Sink {
	return &Sink{Spool: newSpool(limit, dir.Open), changed: make(chan struct{})}
}

// Open returns the write end for the child; the caller closes it after the spawn.
func (s *Sink) Open() (*os.File, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	_ = syscall.SetNonblock(ends[0], true)
	s.pipe = os.NewFile(uintptr(ends[0]), "output")
	s.tail = pipeCapacity
	return os.NewFile(uintptr(ends[1]), "output"), nil
}

// Show makes a terminal the source.
func (s *Sink) Show(terminal *Terminal) { s.pipe, s.tail = terminal.master, terminalCapacity }

// Close gives up an output that no command was started for.
func (s *Sink) Close() {
	if s.pipe != nil {
		_ = s.pipe.Close()
		s.pipe = nil
	}
}

// Pump reads until every holder of the pipe is gone.
func (s *Sink) Pump() {
	if s.pipe == nil {
		return
	}
	defer s.pipe.Close()
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return
	}
	open := true
	for open {
		err = raw.Read(func(fd uintptr) bool {
			n, again := s.take(int(fd))
			open = n > 0
			return !again
		})
		if err != nil {
			return
		}
	}
}

// take moves one read from the pipe to the spool under the lock, so Freeze sees all or nothing of it.
func (s *Sink) take(fd int) (n int, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	buffer := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buffer)
	n, err := syscall.Read(fd, *buffer)
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, *buffer)
	}
	if err == syscall.EAGAIN {
		return 0, true
	}
	if n > 0 && !s.frozen {
		s.Append((*buffer)[:n])
		s.announce()
	}
	return n, false
}

// Freeze takes what the source holds now, at most as much as it can hold, and ends the stream for readers.
func (s *Sink) Freeze() {
	if raw, err := s.pipe.SyscallConn(); err == nil { // a nil pipe says EINVAL: the command never began
		_ = raw.Control(func(fd uintptr) {
			for taken := 0; taken < s.tail; {
				n, again := s.take(int(fd))
				if again || n <= 0 {
					return
				}
				taken += n
			}
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
	s.announce()
}

func (s *Sink) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// State gives the size, whether the stream has ended, and a channel that closes at the next change.
func (s *Sink) State() (size int64, ended bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Size(), s.frozen, s.changed
}

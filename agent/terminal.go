package main

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	sysTiocgptpeer = 0x5441
	terminalName   = "xterm-256color" // what TERM says unless the command's environment does
	terminalPause  = 20 * time.Millisecond
	endOfInput     = 4 // control-D
)

// TerminalSize is in characters.
type TerminalSize struct {
	Rows int64 `json:"rows"`
	Cols int64 `json:"cols"`
}

func (s *TerminalSize) check() error {
	if min(s.Rows, s.Cols) < 1 || max(s.Rows, s.Cols) > 1<<16-1 {
		return badRequest("a terminal has 1 to 65535 rows and columns, not %d and %d", s.Rows, s.Cols)
	}
	return nil
}

// Terminal is the outer end of a pseudo terminal.
type Terminal struct{ master *os.File }

// openTerminal also returns the end for the command; the caller closes it after the spawn.
func openTerminal(size TerminalSize, owner *syscall.Credential) (*Terminal, *os.File, error) {
	fd, err := openMaster()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return nil, nil, fault(http.StatusServiceUnavailable, "spawn_failed", "there are too many terminals: %v", err)
	}
	if err != nil {
		return nil, nil, fault(http.StatusUnprocessableEntity, "terminal_unavailable",
			"this sandbox gives no terminals (%v): mount devpts at /dev/pts, or start the command without one", err)
	}
	master := os.NewFile(uintptr(fd), "terminal")
	slave, err := openSlave(fd)
	if err != nil {
		_ = master.Close()
		return nil, nil, fault(http.StatusUnprocessableEntity, "terminal_unavailable", "the terminal has no inner end: %v", err)
	}
	if owner != nil {
		_ = syscall.Fchown(slave, int(owner.Uid), -1)
	}
	makeUnicode(slave)
	terminal := &Terminal{master}
	terminal.Resize(size)
	return terminal, os.NewFile(uintptr(slave), "terminal"), nil
}

func openMaster() (fd int, err error) {
	for _, path := range []string{"/dev/ptmx", "/dev/pts/ptmx"} {
		fd, err = syscall.Open(path, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err != nil {
			err = &os.PathError{Op: "open", Path: path, Err: err}
			continue
		}
		locked := int32(0)
		if err = ioctl(fd, syscall.TIOCSPTLCK, unsafe.Pointer(&locked)); err == nil {
			return fd, nil
		}
		_ = syscall.Close(fd)
	}
	return -1, err
}

// openSlave needs no path where the kernel (4.13) can do without, for the name may lead elsewhere in a container.
func openSlave(master int) (int, error) {
	const flags = syscall.O_RDWR | syscall.O_NOCTTY | syscall.O_CLOEXEC
	fd, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(master), sysTiocgptpeer, flags)
	if errno == 0 {
		return int(fd), nil
	}
	var number uint32
	if err := ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return -1, err
	}
	return syscall.Open("/dev/pts/"+strconv.Itoa(int(number)), flags, 0)
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return call(errno)
}

// makeUnicode lets the line editor take away whole characters.
func makeUnicode(fd int) {
	var modes syscall.Termios
	if ioctl(fd, syscall.TCGETS, unsafe.Pointer(&modes)) == nil {
		modes.Iflag |= syscall.IUTF8
		_ = ioctl(fd, syscall.TCSETS, unsafe.Pointer(&modes))
	}
}

// control fails once the terminal is gone.
func (t *Terminal) control(request uintptr, argument unsafe.Pointer) (err error) {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	if closed := raw.Control(func(fd uintptr) { err = ioctl(int(fd), request, argument) }); closed != nil {
		return os.ErrClosed
	}
	return err
}

// Resize tells the programs in front, by SIGWINCH; false when the terminal is gone.
func (t *Terminal) Resize(size TerminalSize) bool {
	window := [4]uint16{uint16(size.Rows), uint16(size.Cols)}
	return t.control(syscall.TIOCSWINSZ, unsafe.Pointer(&window)) == nil
}

// Foreground is the process group that the keys of a terminal reach; 0 when there is none.
func (t *Terminal) Foreground() int {
	var group int32
	if t.control(syscall.TIOCGPGRP, unsafe.Pointer(&group)) != nil {
		return 0
	}
	return int(group)
}

// lines tells whether programs get whole lines, with control-D as the end of input.
func (t *Terminal) lines() bool {
	var modes syscall.Termios
	return t.control(syscall.TCGETS, unsafe.Pointer(&modes)) == nil && modes.Lflag&syscall.ICANON != 0
}

// TerminalInput is what is typed. It asks the kernel for room again and again, as the kernel does not always say when
// there is some: a large paste would wait for ever.
type TerminalInput struct {
	terminal *Terminal
	mu       sync.Mutex
	until    time.Time
	closed   chan struct{}
	once     sync.Once
	last     byte
}

func newTerminalInput(terminal *Terminal) *TerminalInput {
	return &TerminalInput{terminal: terminal, closed: make(chan struct{}), last: '\n'}
}

func (t *TerminalInput) Write(p []byte) (written int, err error) {
	for pause := time.Millisecond; written < len(p); {
		n, err := t.try(p[written:])
		if n > 0 {
			written, pause = written+n, time.Millisecond
			t.last = p[written-1]
			continue
		}
		if err != syscall.EAGAIN {
			return written, err
		}
		if t.overdue() {
			return written, os.ErrDeadlineExceeded
		}
		select {
		case <-t.closed:
			return written, os.ErrClosed
		case <-time.After(pause):
			pause = min(2*pause, terminalPause)
		}
	}
	return written, nil
}

func (t *TerminalInput) try(p []byte) (n int, err error) {
	select {
	case <-t.closed:
		return 0, os.ErrClosed
	default:
	}
	raw, err := t.terminal.master.SyscallConn()
	if err != nil {
		return 0, os.ErrClosed
	}
	closed := raw.Control(func(fd uintptr) {
		for n, err = syscall.Write(int(fd), p); err == syscall.EINTR; {
			n, err = syscall.Write(int(fd), p)
		}
	})
	if closed != nil {
		return 0, os.ErrClosed
	}
	if n == 0 && err == nil {
		err = syscall.EAGAIN
	}
	return max(n, 0), err
}

func (t *TerminalInput) overdue() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.until.IsZero() && time.Now().After(t.until)
}

func (t *TerminalInput) SetWriteDeadline(until time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = until
	return nil
}

// EndInput types control-D, twice after a line that is not whole: the first then only hands that over.
func (t *TerminalInput) EndInput() {
	if !t.terminal.lines() {
		return
	}
	keys := []byte{endOfInput}
	if t.last != '\n' && t.last != '\r' {
		keys = append(keys, endOfInput)
	}
	_, _ = t.Write(keys)
}

// Close ends typing; the terminal itself is its reader's to close.
func (t *TerminalInput) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

package main

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"
	"unsafe"
)

const (
	hangUpGrace   = 2
	hangUpMost    = 60
	leavingGlance = 500 * time.Millisecond
	pollRdhup     = 0x2000
	lastReading   = 10 * time.Second // for a client to take what was shown last, and leave
)

func (s *Server) terminalOf(r *http.Request) (*Run, error) {
	run, err := s.runs.Find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if run.spec.Terminal == nil {
		return nil, fault(http.StatusConflict, "no_terminal", "the command %q has no terminal", run.spec.ID)
	}
	return run, nil
}

// execResize also takes the size for a command that waits for its turn.
func (s *Server) execResize(w http.ResponseWriter, r *http.Request) error {
	run, err := s.terminalOf(r)
	if err != nil {
		return err
	}
	rows, err := number(r.URL.Query(), "rows", 0)
	if err != nil {
		return err
	}
	cols, err := number(r.URL.Query(), "cols", 0)
	if err != nil {
		return err
	}
	size := TerminalSize{rows, cols}
	if err := size.check(); err != nil {
		return err
	}
	return answer(w, map[string]bool{"resized": run.awaitBegun(r.Context()) && run.terminal.Resize(size)})
}

func (s *Server) execHangUp(w http.ResponseWriter, r *http.Request) error {
	run, err := s.terminalOf(r)
	if err != nil {
		return err
	}
	grace, err := number(r.URL.Query(), "grace", hangUpGrace)
	if err != nil {
		return err
	}
	return answer(w, map[string]bool{"ended": run.HangUp(time.Duration(min(grace, hangUpMost)) * time.Second)})
}

// execTerminal joins a connection to a terminal: what comes is typed, what the terminal shows goes out from the cursor
// on. When the command has ended, and all it said is out, the connection ends; when the client's side ends first, the
// client has left.
func (s *Server) execTerminal(w http.ResponseWriter, r *http.Request) error {
	run, err := s.terminalOf(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	cursor, err := number(query, "cursor", 0)
	if err != nil {
		return err
	}
	grace, err := number(query, "grace", hangUpGrace)
	if err != nil {
		return err
	}
	conn, buffered, err := upgrade(w, r, "orchard-pty", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	here, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		defer leave()
		run.typed(here, buffered)
	}()
	go watchLeaving(here, conn, run, leave)
	run.show(here, conn, cursor)
	if _, ended := run.Done(); ended {
		awaitLeaving(here)
	} else if query.Get("hangup") == "1" {
		run.HangUp(time.Duration(min(grace, hangUpMost)) * time.Second)
	}
	return nil
}

// awaitLeaving lets the client end a connection of which all is said. Closed with keys in it that nobody has read, it
// would break, and what the client had not read yet would be lost to it.
func awaitLeaving(here context.Context) {
	patience, cancel := context.WithTimeout(here, lastReading)
	defer cancel()
	<-patience.Done()
}

// typed returns when the client has left. Input that a command no longer takes is dropped.
func (r *Run) typed(ctx context.Context, input interface{ Read([]byte) (int, error) }) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := input.Read(buffer)
		if n > 0 && r.awaitBegun(ctx) {
			_ = r.stdin.Type(ctx, buffer[:n])
		}
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

// show returns when all is out, or the client has left.
func (r *Run) show(ctx context.Context, conn net.Conn, cursor int64) {
	for ctx.Err() == nil {
		size, ended := awaitOutput(ctx, r.stdout, cursor, waitMax)
		start, piece, err := readKept(r.stdout.Spool, cursor, outputChunkMax, size)
		if err != nil {
			return
		}
		if len(piece) > 0 {
			_ = conn.SetWriteDeadline(time.Now().Add(bodyPatience))
			if _, err := conn.Write(piece); err != nil {
				return
			}
		}
		if cursor = start + int64(len(piece)); ended && cursor >= size {
			closeWrite(conn)
			return
		}
	}
}

// watchLeaving notices a client that goes while what it pasted still waits for the command to read: nobody reads the
// connection then.
func watchLeaving(ctx context.Context, conn net.Conn, run *Run, leave context.CancelFunc) {
	glance := time.NewTicker(leavingGlance)
	defer glance.Stop()
	for before := int64(-1); ; {
		select {
		case <-ctx.Done():
			return
		case <-glance.C:
		}
		now := run.received()
		if now == before && hasLeft(conn) {
			leave()
			return
		}
		before = now
	}
}

func (r *Run) received() int64 {
	if !r.hasBegun() {
		return 0
	}
	return r.stdin.Received()
}

// hasLeft tells whether the other side has closed, although bytes of it may still be unread.
func hasLeft(conn net.Conn) (left bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	closed := raw.Control(func(fd uintptr) {
		asked := struct {
			fd              int32
			events, revents int16
		}{fd: int32(fd), events: pollRdhup}
		var now syscall.Timespec
		count, _, _ := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&asked)), 1,
			uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		left = count == 1
	})
	return left || closed != nil
}

// HangUp does what the end of a line does to a session: SIGHUP and SIGCONT for the command and for what is in front.
// What has not ended after the grace is killed with all its children. It tells whether the command has ended.
func (r *Run) HangUp(grace time.Duration) bool {
	if r.host.Drop(r, syscall.SIGHUP) {
		return true
	}
	if !r.awaitBegun(context.Background()) {
		return true
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGCONT} {
		r.signalForeground(signal)
		r.host.reaper.Signal(r.pid, signal, true)
	}
	patience, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case <-r.done:
		return true
	case <-patience.Done():
	}
	r.Kill()
	_, ended := r.Done()
	return ended
}

// signalForeground reaches what the terminal's keys would; false when nothing is in front.
func (r *Run) signalForeground(signal syscall.Signal) bool {
	group := r.terminal.Foreground()
	return group > 1 && r.host.reaper.SignalGroupOf(r.pid, group, signal)
}

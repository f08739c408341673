package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Run is one command, from its arrival until it is forgotten.
type Run struct {
	spec     *ExecSpec
	host     *Runs
	created  time.Time
	stdout   *Sink
	stderr   *Sink
	begun    chan struct{} // closed when the command has been spawned; what follows, down to done, stands from then on
	pid      int
	terminal *Terminal // nil when the command has none
	stdin    *Stdin    // nil when the command reads /dev/null
	group    *Cgroup
	started  time.Time
	ticks    uint64 // bootTicks at the start
	done     chan struct{}

	killed   atomic.Bool
	mu       sync.Mutex
	ended    time.Time
	endTicks uint64
	status   syscall.WaitStatus
	timedOut bool
	failure  *Fault
}

// Stream tells how much of one output there was and how much of it is kept.
type Stream struct {
	Size int64 `json:"size"`
	Head int64 `json:"head"`
	Tail int64 `json:"tail"`
}

// Status is what is told of a run. ExitCode is 128+n for signal n, and null while the command runs. Times are seconds
// since the epoch, null when there was no such moment yet.
type Status struct {
	ID       string   `json:"id"`
	Lane     string   `json:"lane,omitempty"`
	Note     string   `json:"note,omitempty"`
	PID      int      `json:"pid"`
	State    string   `json:"state"` // queued, running, exited, or failed: it could not be started when its turn came
	ExitCode *int     `json:"exit_code"`
	Signal   int      `json:"signal"`
	TimedOut bool     `json:"timed_out"`
	Timeout  float64  `json:"timeout"`
	Created  float64  `json:"created"`
	Started  *float64 `json:"started"`
	Ended    *float64 `json:"ended"`
	Duration float64  `json:"duration"`
	Stdin    int64    `json:"stdin_received"`
	Stdout   Stream   `json:"stdout"`
	Stderr   Stream   `json:"stderr"`
	Error    *Fault   `json:"error,omitempty"` // of a failed run
}

func newRun(spec *ExecSpec, host *Runs) *Run {
	return &Run{
		spec: spec, host: host, created: time.Now(), begun: make(chan struct{}), done: make(chan struct{}),
		stdout: newSink(spec.Output, host.spoolDir), stderr: newSink(spec.Output, host.spoolDir),
	}
}

// begin spawns the command; on failure nothing of it is left.
func (r *Run) begin() error {
	command, err := resolve(r.spec, r.host.defaults)
	if err != nil {
		return err
	}
	var theirs []*os.File
	defer func() { closeAll(theirs) }()
	if command.script != nil {
		theirs = append(theirs, command.script)
	}
	files, err := r.openFiles(command.user)
	theirs = append(theirs, files...)
	var exited <-chan syscall.WaitStatus
	if err == nil {
		exited, err = r.spawn(command, files)
	}
	if err != nil {
		r.stdout.Close()
		r.stderr.Close()
		if r.stdin != nil {
			r.stdin.Abandon()
		}
		r.group.Remove()
		return err
	}
	close(r.begun)
	go r.stdout.Pump()
	go r.stderr.Pump()
	if r.spec.Stdin == "inline" {
		go r.feed()
	}
	go r.supervise(exited)
	return nil
}

// openFiles returns the command's standard input, output and error.
func (r *Run) openFiles(user *syscall.Credential) (files []*os.File, err error) {
	if r.spec.Terminal != nil {
		return r.openTerminal(user)
	}
	input, err := r.openInput()
	if err != nil {
		return nil, err
	}
	files = append(files, input)
	for _, sink := range []*Sink{r.stdout, r.stderr} {
		end, err := sink.Open()
		if err != nil {
			return files, err
		}
		files = append(files, end)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

func (r *Run) openInput() (input *os.File, err error) {
	if r.spec.Stdin == "" {
		if input, err = os.Open(os.DevNull); err == nil {
			return input, nil
		}
		stdin, input, err := newStdin() // an image without /dev: an input that is at its end
		if err == nil {
			stdin.End()
		}
		return input, err
	}
	r.stdin, input, err = newStdin()
	return input, err
}

func (r *Run) openTerminal(user *syscall.Credential) ([]*os.File, error) {
	terminal, inner, err := openTerminal(*r.spec.Terminal, user)
	if err != nil {
		return nil, err
	}
	r.terminal = terminal
	r.stdin = &Stdin{pipe: newTerminalInput(terminal)}
	r.stdout.Show(terminal)
	return []*os.File{inner, inner, inner}, nil
}

func (r *Run) spawn(c *Command, files []*os.File) (<-chan syscall.WaitStatus, error) {
	attributes := &syscall.ProcAttr{
		Dir: c.cwd,
		Env: c.env,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: r.terminal != nil, Credential: c.user},
	}
	for _, file := range files {
		attributes.Files = append(attributes.Files, rawFd(file))
	}
	if c.script != nil {
		attributes.Files = append(attributes.Files, rawFd(c.script))
	}
	r.group = r.host.cgroups.Create()
	r.group.Enter(attributes.Sys)
	r.started, r.ticks = time.Now(), bootTicks()
	pid, exited, err := r.host.reaper.Spawn(func() (int, error) { return syscall.ForkExec(c.path, c.argv, attributes) })
	runtime.KeepAlive(files)
	r.pid = pid
	return exited, spawnFault(c, err)
}

// rawFd does not switch the file to blocking mode, as File.Fd may.
func rawFd(file *os.File) (fd uintptr) {
	raw, err := file.SyscallConn()
	if err == nil {
		_ = raw.Control(func(n uintptr) { fd = n })
	}
	return fd
}

func spawnFault(c *Command, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.E2BIG):
		return fault(http.StatusUnprocessableEntity, "argument_too_long",
			"the arguments and environment exceed what Linux takes (128 KiB each): use a file or stdin")
	case errors.Is(err, syscall.ENOENT):
		return fault(http.StatusUnprocessableEntity, "command_not_found", "%q or its interpreter is missing", c.path)
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EACCES):
		return fault(http.StatusUnprocessableEntity, "not_executable", "cannot execute %q in %q: %v", c.path, c.cwd, err)
	case errors.Is(err, syscall.EPERM) && c.user != nil, errors.Is(err, syscall.EINVAL) && c.user != nil:
		return fault(http.StatusForbidden, "user_not_permitted", "cannot become %d:%d here: %v", c.user.Uid, c.user.Gid, err)
	}
	return fault(http.StatusServiceUnavailable, "spawn_failed", "cannot start %q: %v", c.path, err)
}

func (r *Run) feed() {
	_, _ = r.stdin.pipe.Write(r.spec.input)
	r.stdin.End()
	r.spec.input = nil
}

// supervise waits for the command itself, not for those that inherited its output.
func (r *Run) supervise(exited <-chan syscall.WaitStatus) {
	var limit <-chan time.Time
	if r.spec.Timeout > 0 {
		seconds := min(r.spec.Timeout, maxTimeout) // more would wrap round to no time at all
		timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
		defer timer.Stop()
		limit = timer.C
	}
	var status syscall.WaitStatus
	timedOut := false
	select {
	case status = <-exited:
	case <-limit:
		timedOut = true
		r.Kill()
		status = <-exited
	}
	if r.stdin != nil {
		r.stdin.Abandon()
	}
	r.settle(status, timedOut, nil)
	r.group.Remove()
	r.host.advance(r.spec.Lane)
}

// settle is the end of a run, whether it ever began or not.
func (r *Run) settle(status syscall.WaitStatus, timedOut bool, failure *Fault) {
	r.stdout.Freeze()
	r.stderr.Freeze()
	r.mu.Lock()
	r.ended, r.endTicks, r.status, r.timedOut, r.failure = time.Now(), bootTicks(), status, timedOut, failure
	r.mu.Unlock()
	close(r.done)
	r.host.finished(r)
}

// Kill ends the whole tree of the command, and returns when it is gone. A run that waits for its turn never has it.
func (r *Run) Kill() bool {
	if r.host.Drop(r, syscall.SIGKILL) {
		return true
	}
	if !r.awaitBegun(context.Background()) {
		return false
	}
	r.killed.Store(true)
	r.group.Kill()
	tree := Tree{leader: r.pid, id: r.spec.ID, owns: func(p Proc) bool { return r.host.ownsOrphan(r, p) }}
	known := map[int]bool{r.pid: true}
	r.host.reaper.Signal(r.pid, syscall.SIGSTOP, true) // while the parent lives, ancestry still tells whose child it is
	tree.members(processes(), known)
	r.host.reaper.Signal(r.pid, syscall.SIGKILL, true)
	return tree.Kill(known)
}

// Done tells whether the command has ended, and at which tick.
func (r *Run) Done() (ticks uint64, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endTicks, !r.ended.IsZero()
}

// hasBegun tells whether the command was spawned; it may have ended since.
func (r *Run) hasBegun() bool {
	select {
	case <-r.begun:
		return true
	default:
		return false
	}
}

// awaitBegun waits for the run's turn; false when it will not come, or the caller has gone.
func (r *Run) awaitBegun(ctx context.Context) bool {
	select {
	case <-r.begun:
	case <-r.done:
	case <-ctx.Done():
	}
	return r.hasBegun()
}

func (r *Run) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{
		ID: r.spec.ID, Lane: r.spec.Lane, Note: r.spec.Note, State: "queued", TimedOut: r.timedOut, Timeout: r.spec.Timeout,
		Created: epoch(r.created), Stdout: r.stdout.stream(), Stderr: r.stderr.stream(), Error: r.failure,
	}
	until := time.Now()
	if !r.ended.IsZero() {
		until = r.ended
		ended := epoch(until)
		s.State, s.Ended = "exited", &ended
	}
	if r.hasBegun() {
		started := epoch(r.started)
		s.PID, s.Started, s.Duration, s.Stdin = r.pid, &started, until.Sub(r.started).Seconds(), r.stdin.Received()
	}
	switch {
	case r.failure != nil:
		s.State = "failed"
	case !r.ended.IsZero():
		s.setExit(r.status)
	case s.Started != nil:
		s.State = "running"
	}
	return s
}

func (s *Status) setExit(status syscall.WaitStatus) {
	code := status.ExitStatus()
	if status.Signaled() {
		s.Signal = int(status.Signal())
		code = 128 + s.Signal
	}
	s.ExitCode = &code
}

func epoch(moment time.Time) float64 { return float64(moment.UnixNano()) / 1e9 }

func (s *Sink) stream() Stream {
	size := s.Size()
	head, tail := s.Kept()
	return Stream{size, head, tail}
}

func (r *Run) release() {
	r.stdout.Spool.Close()
	r.stderr.Spool.Close()
}

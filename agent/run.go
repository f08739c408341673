package main

import (
	"errors"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Run is one command, from its spawn until it is forgotten.
type Run struct {
	spec    *ExecSpec
	host    *Runs
	pid     int
	stdout  *Sink
	stderr  *Sink
	stdin   *Stdin // nil when the command reads /dev/null
	group   *Cgroup
	started time.Time
	ticks   uint64 // bootTicks at the start
	done    chan struct{}

	killed   atomic.Bool
	mu       sync.Mutex
	ended    time.Time
	endTicks uint64
	status   syscall.WaitStatus
	timedOut bool
}

// Stream tells how much of one output there was and how much of it is kept.
type Stream struct {
	Size int64 `json:"size"`
	Head int64 `json:"head"`
	Tail int64 `json:"tail"`
}

// Status is what is told of a run. ExitCode is 128+n for signal n, and null while the command runs.
type Status struct {
	ID       string  `json:"id"`
	PID      int     `json:"pid"`
	State    string  `json:"state"`
	ExitCode *int    `json:"exit_code"`
	Signal   int     `json:"signal"`
	TimedOut bool    `json:"timed_out"`
	Timeout  float64 `json:"timeout"`
	Started  float64 `json:"started"`
	Duration float64 `json:"duration"`
	Stdin    int64   `json:"stdin_received"`
	Stdout   Stream  `json:"stdout"`
	Stderr   Stream  `json:"stderr"`
}

// launch spawns the command; on failure nothing of it is left.
func launch(spec *ExecSpec, host *Runs) (*Run, error) {
	command, err := resolve(spec, host.defaults)
	if err != nil {
		return nil, err
	}
	r := &Run{spec: spec, host: host, done: make(chan struct{})}
	var ours, theirs []*os.File
	defer func() { closeAll(theirs) }()
	if command.script != nil {
		theirs = append(theirs, command.script)
	}
	input, err := r.openInput()
	if err == nil {
		theirs = append(theirs, input)
		err = r.openOutputs(&ours, &theirs)
	}
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	files := theirs[len(theirs)-3:]
	exited, err := r.spawn(command, files)
	if err != nil {
		closeAll(ours)
		if r.stdin != nil {
			r.stdin.Abandon()
		}
		r.group.Remove()
		return nil, err
	}
	go r.stdout.Pump()
	go r.stderr.Pump()
	if spec.Stdin == "inline" {
		go r.feed()
	}
	go r.supervise(exited)
	return r, nil
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

func (r *Run) openOutputs(ours, theirs *[]*os.File) error {
	for _, sink := range []**Sink{&r.stdout, &r.stderr} {
		opened, end, err := newSink(r.spec.Output, r.host.spoolDir)
		if err != nil {
			return err
		}
		*sink = opened
		*ours, *theirs = append(*ours, opened.pipe), append(*theirs, end)
	}
	return nil
}

func (r *Run) spawn(c *Command, files []*os.File) (<-chan syscall.WaitStatus, error) {
	attributes := &syscall.ProcAttr{
		Dir: c.cwd,
		Env: c.env,
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: c.user},
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
	r.stdout.Freeze()
	r.stderr.Freeze()
	r.mu.Lock()
	r.ended, r.endTicks, r.status, r.timedOut = time.Now(), bootTicks(), status, timedOut
	r.mu.Unlock()
	close(r.done)
	r.host.finished(r)
	r.group.Remove()
}

// Kill ends the whole tree of the command, and returns when it is gone.
func (r *Run) Kill() bool {
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

func (r *Run) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{
		ID: r.spec.ID, PID: r.pid, State: "running", TimedOut: r.timedOut, Timeout: r.spec.Timeout,
		Started: float64(r.started.UnixNano()) / 1e9, Duration: time.Since(r.started).Seconds(),
		Stdin: r.stdin.Received(), Stdout: r.stdout.stream(), Stderr: r.stderr.stream(),
	}
	if r.ended.IsZero() {
		return s
	}
	code := r.status.ExitStatus()
	if r.status.Signaled() {
		s.Signal = int(r.status.Signal())
		code = 128 + s.Signal
	}
	s.State, s.ExitCode, s.Duration = "exited", &code, r.ended.Sub(r.started).Seconds()
	return s
}

func (s *Sink) stream() Stream {
	size := s.Size()
	head, tail := s.Kept()
	return Stream{size, head, tail}
}

func (r *Run) release() {
	r.stdout.Spool.Close()
	r.stderr.Spool.Close()
}

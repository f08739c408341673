package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

const (
	waitMax    = 60 * time.Second
	listedRuns = 4096 // more than are ever known, unless thousands run at once
)

func (s *Server) exec(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	spec, err := readSpec(patientBody(w, r))
	if err != nil {
		return err
	}
	spec.owner = bearer(r)
	run, err := s.runs.Start(spec)
	if err != nil {
		return err
	}
	return answerRun(w, r, run, wait)
}

func (s *Server) execStatus(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	run, err := s.runs.Find(r.PathValue("id"))
	if err != nil {
		return err
	}
	return answerRun(w, r, run, wait)
}

// execList tells of every known run, without outputs, so that a driver which has lost its memory finds them again.
func (s *Server) execList(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	most, err := number(query, "limit", listedRuns)
	if err != nil {
		return err
	}
	runs, more := s.runs.List(int(min(most, listedRuns)))
	told := make([]Status, 0, len(runs))
	for _, run := range runs {
		if !query.Has("lane") || query.Get("lane") == run.spec.Lane {
			told = append(told, run.Status())
		}
	}
	return answer(w, map[string]any{"runs": told, "more": more})
}

func waitOf(query url.Values) (time.Duration, error) {
	text := query.Get("wait")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) {
		return 0, badRequest("wait is not a number of seconds: %q", text)
	}
	return min(time.Duration(min(seconds, 1e6)*float64(time.Second)), waitMax), nil
}

// answerRun sends a length-prefixed status, and after it, when the command has ended, the kept bytes of both outputs.
func answerRun(w http.ResponseWriter, r *http.Request, run *Run, wait time.Duration) error {
	waitFor(r.Context(), run.done, wait)
	status := run.Status()
	ended := status.Ended != nil
	if !ended {
		status.Stdout.Head, status.Stdout.Tail, status.Stderr.Head, status.Stderr.Tail = 0, 0, 0, 0
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	length := int64(4+len(text)) + status.Stdout.Head + status.Stdout.Tail + status.Stderr.Head + status.Stderr.Tail
	w.Header().Set("Content-Type", "application/vnd.orchard.run")
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	frame := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text))), text...)
	if _, err := w.Write(frame); err != nil || !ended {
		return err
	}
	patient := patientAnswer(w)
	if err := copyKept(patient, run.stdout.Spool, status.Stdout.Size); err != nil {
		return err
	}
	return copyKept(patient, run.stderr.Spool, status.Stderr.Size)
}

func waitFor(ctx context.Context, done <-chan struct{}, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func copyKept(w io.Writer, spool *Spool, size int64) error {
	if size == 0 {
		return nil
	}
	buffer := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buffer)
	for cursor := int64(0); cursor < size; {
		start, n, err := spool.ReadAt(*buffer, cursor)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if _, err := w.Write((*buffer)[:n]); err != nil {
			return err
		}
		cursor = start + int64(n)
	}
	return nil
}

func (s *Server) execStdin(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.Find(r.PathValue("id"))
	if err != nil {
		return err
	}
	if run.spec.Stdin != "stream" {
		return fault(http.StatusConflict, "stdin_closed", "this command was not started with a streamed stdin")
	}
	if !run.awaitBegun(r.Context()) {
		return fault(http.StatusConflict, "stdin_closed", "this command never began")
	}
	query := r.URL.Query()
	offset, err := number(query, "offset", run.stdin.Received())
	if err != nil {
		return err
	}
	// No read deadline: the body waits for the command, which may think for as long as it likes.
	if err := run.stdin.Write(r.Context(), offset, r.Body); err != nil {
		return err
	}
	if query.Get("eof") == "1" {
		run.stdin.End()
	}
	return answer(w, map[string]int64{"stdin_received": run.stdin.Received()})
}

func (s *Server) execSignal(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.Find(r.PathValue("id"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	signal, err := number(query, "signal", int64(syscall.SIGTERM))
	if err != nil || signal < 0 || signal > 64 {
		return badRequest("signal must be between 0 and 64")
	}
	delivered, err := s.deliver(r.Context(), run, syscall.Signal(signal), query.Get("to"))
	if err != nil {
		return err
	}
	return answer(w, map[string]bool{"delivered": delivered})
}

func (s *Server) deliver(ctx context.Context, run *Run, signal syscall.Signal, to string) (bool, error) {
	switch to {
	case "", "group", "process":
	case "tree":
		if signal != syscall.SIGKILL {
			return false, badRequest("only signal 9 goes to the tree")
		}
		return run.Kill(), nil
	default:
		return false, badRequest("to must be group, process or tree")
	}
	if s.runs.Waits(run) {
		return ends(signal) && s.runs.Drop(run, signal), nil
	}
	if !run.awaitBegun(ctx) {
		return false, nil
	}
	if run.terminal != nil && to == "" && isKey(signal) && run.signalForeground(signal) {
		return true, nil
	}
	return s.runs.reaper.Signal(run.pid, signal, to != "process"), nil
}

// isKey tells whether a terminal has a key for the signal; then it is meant for what is in front.
func isKey(signal syscall.Signal) bool {
	return signal == syscall.SIGINT || signal == syscall.SIGQUIT || signal == syscall.SIGTSTP
}

func number(query url.Values, name string, fallback int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("%s is not a whole number: %q", name, text)
	}
	return n, nil
}

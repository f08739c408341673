package main

import (
	"maps"
	"net/http"
	"slices"
	"syscall"
)

const (
	waitingMax      = 1024
	waitingBytesMax = 4 << 20 // more would take the collector more than it has, see memoryGoal
)

// Lanes lets the runs of one lane come one after the other, in the order of their arrival. Guarded by Runs.mu.
type Lanes struct {
	waiting map[string][]*Run // a lane has a key as long as something runs in it
	count   int
	bytes   int64
}

// Enter tells whether the run must wait; when it need not, the lane is its own until advance.
func (l *Lanes) Enter(r *Run) (queued bool, err error) {
	lane := r.spec.Lane
	if lane == "" {
		return false, nil
	}
	line, busy := l.waiting[lane]
	if !busy {
		l.waiting[lane] = nil
		return false, nil
	}
	if l.count >= waitingMax || l.count > 0 && l.bytes+r.spec.weight > waitingBytesMax {
		return false, fault(http.StatusTooManyRequests, "lane_full",
			"%d commands wait for their turn: send this one again when some have ended", l.count)
	}
	l.waiting[lane] = append(line, r)
	l.count++
	l.bytes += r.spec.weight
	return true, nil
}

// Next gives the lane to the first that waits; nil, when none does, frees the lane.
func (l *Lanes) Next(lane string) *Run {
	line := l.waiting[lane]
	if len(line) == 0 {
		delete(l.waiting, lane)
		return nil
	}
	l.Leave(line[0])
	return line[0]
}

// Leave takes a run out of its line; false when it waits in none.
func (l *Lanes) Leave(r *Run) bool {
	line := l.waiting[r.spec.Lane]
	at := slices.Index(line, r)
	if at < 0 {
		return false
	}
	l.waiting[r.spec.Lane] = slices.Concat(line[:at], line[at+1:])
	l.count--
	l.bytes -= r.spec.weight
	return true
}

// advance begins the lane's next run. One that cannot be started ends as failed, and the one after it comes.
func (rs *Runs) advance(lane string) {
	for lane != "" {
		rs.mu.Lock()
		r := rs.lanes.Next(lane)
		rs.mu.Unlock()
		if r == nil {
			return
		}
		err := r.begin()
		if err == nil {
			return
		}
		r.settle(0, false, asFault(err))
	}
}

// Waits tells whether the run's turn has yet to come.
func (rs *Runs) Waits(r *Run) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Contains(rs.lanes.waiting[r.spec.Lane], r)
}

// Drop ends a run that waits, as the signal would have ended it; false when it does not wait.
func (rs *Runs) Drop(r *Run, signal syscall.Signal) bool {
	rs.mu.Lock()
	waited := rs.lanes.Leave(r)
	rs.mu.Unlock()
	if waited {
		r.settle(syscall.WaitStatus(signal), false, nil)
	}
	return waited
}

// DropAll ends everything that waits.
func (rs *Runs) DropAll() {
	rs.mu.Lock()
	lines := slices.Collect(maps.Values(rs.lanes.waiting))
	rs.mu.Unlock()
	for _, r := range slices.Concat(lines...) {
		rs.Drop(r, syscall.SIGKILL)
	}
}

// ends tells whether a program that does nothing about the signal is ended by it.
func ends(signal syscall.Signal) bool {
	switch signal {
	case 0, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH, syscall.SIGSTOP, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU:
		return false
	}
	return true
}

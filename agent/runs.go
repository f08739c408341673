package main

import (
	"crypto/sha256"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	rememberCount = 256
	rememberFor   = 15 * time.Minute
	rememberDisk  = 512 << 20
	forgottenMax  = 64 << 10
)

// Defaults apply to commands whose spec is silent.
type Defaults struct {
	Account *Account
	Workdir string
}

// Runs holds every run by its client-made id. An id starts at most one command, ever.
type Runs struct {
	defaults Defaults
	reaper   *Reaper
	spoolDir *SpoolDir
	cgroups  *Cgroups
	total    atomic.Int64

	mu        sync.Mutex
	closed    bool
	byID      map[string]*entry
	lanes     Lanes
	ended     []*Run // oldest first
	seed      maphash.Seed
	forgotten map[uint64]struct{}
	oldest    []uint64
}

// entry exists from the first request on, so a concurrent repeat waits for the same start.
type entry struct {
	digest [32]byte
	ready  chan struct{}
	run    *Run
	err    error
}

func newRuns(defaults Defaults, reaper *Reaper, spool *SpoolDir, cgroups *Cgroups) *Runs {
	return &Runs{
		defaults: defaults, reaper: reaper, spoolDir: spool, cgroups: cgroups,
		byID: map[string]*entry{}, lanes: Lanes{waiting: map[string][]*Run{}}, seed: maphash.MakeSeed(), forgotten: map[uint64]struct{}{},
	}
}

// Start begins the command or attaches to the run that has its id. A start that failed leaves no trace: the error is
// the answer, and nothing ran.
func (rs *Runs) Start(spec *ExecSpec) (*Run, error) {
	rs.mu.Lock()
	if _, gone := rs.forgotten[rs.hash(spec.ID)]; gone {
		rs.mu.Unlock()
		return nil, forgotten(spec.ID)
	}
	if e, ok := rs.byID[spec.ID]; ok {
		rs.mu.Unlock()
		if e.digest != spec.digest {
			return nil, fault(http.StatusConflict, "id_conflict", "id %q belongs to another command", spec.ID)
		}
		<-e.ready
		return e.run, e.err
	}
	if rs.closed {
		rs.mu.Unlock()
		return nil, fault(http.StatusServiceUnavailable, "shutting_down", "the agent is shutting down")
	}
	r := newRun(spec, rs)
	queued, err := rs.lanes.Enter(r)
	if err != nil {
		rs.mu.Unlock()
		return nil, err
	}
	e := &entry{digest: spec.digest, ready: make(chan struct{}), run: r}
	rs.byID[spec.ID] = e
	rs.mu.Unlock()
	rs.total.Add(1)
	if !queued {
		rs.beginFirst(e)
	}
	close(e.ready)
	return e.run, e.err
}

// beginFirst starts a run that need not wait. Its failure is the answer, so nothing else must tell of it.
func (rs *Runs) beginFirst(e *entry) {
	r := e.run
	if e.err = r.begin(); e.err == nil {
		return
	}
	e.run = nil
	rs.mu.Lock()
	delete(rs.byID, r.spec.ID)
	rs.mu.Unlock()
	rs.advance(r.spec.Lane)
}

// Find returns a run that is alive or remembered.
func (rs *Runs) Find(id string) (*Run, error) {
	rs.mu.Lock()
	e, ok := rs.byID[id]
	_, gone := rs.forgotten[rs.hash(id)]
	rs.mu.Unlock()
	if gone {
		return nil, forgotten(id)
	}
	if !ok {
		return nil, fault(http.StatusNotFound, "run_unknown", "no run has the id %q", id)
	}
	<-e.ready
	if e.err != nil {
		return nil, fault(http.StatusNotFound, "run_unknown", "the run %q did not start: %v", id, e.err)
	}
	return e.run, nil
}

func forgotten(id string) *Fault {
	return fault(http.StatusGone, "run_forgotten", "the run %q ended and its output is no longer kept", id)
}

func (rs *Runs) hash(id string) uint64 { return maphash.String(rs.seed, id) }

// finished enters the run among the remembered and forgets those beyond the bounds.
func (rs *Runs) finished(r *Run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.ended = append(rs.ended, r)
	var disk int64
	for _, old := range rs.ended {
		disk += old.stdout.OnDisk() + old.stderr.OnDisk()
	}
	for len(rs.ended) > 1 && (len(rs.ended) > rememberCount || disk > rememberDisk || rs.ended[0].expired()) {
		old := rs.ended[0]
		rs.ended = rs.ended[1:]
		disk -= old.stdout.OnDisk() + old.stderr.OnDisk()
		rs.forget(old)
	}
}

func (r *Run) expired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.ended) > rememberFor
}

// forget keeps 8 bytes of the id, so that it can never run again.
func (rs *Runs) forget(r *Run) {
	delete(rs.byID, r.spec.ID)
	h := rs.hash(r.spec.ID)
	rs.forgotten[h] = struct{}{}
	rs.oldest = append(rs.oldest, h)
	if len(rs.oldest) > forgottenMax {
		delete(rs.forgotten, rs.oldest[0])
		rs.oldest = rs.oldest[1:]
	}
	r.release()
}

// ownsOrphan decides for an adopted process without a mark: r owns it when no other run was alive at its birth.
func (rs *Runs) ownsOrphan(r *Run, p Proc) bool {
	if p.start < r.ticks || rs.reaper.Watched(p.pid) {
		return false
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, e := range rs.byID {
		select {
		case <-e.ready:
		default:
			return false
		}
		if e.run == nil || e.run == r || !e.run.hasBegun() || e.run.ticks > p.start {
			continue
		}
		if end, ended := e.run.Done(); !ended || end >= p.start {
			return false
		}
	}
	return true
}

// known returns every run that is alive or remembered, in no order. The caller holds the lock.
func (rs *Runs) known() (all []*Run) {
	for _, e := range rs.byID {
		select {
		case <-e.ready:
			if e.run != nil {
				all = append(all, e.run)
			}
		default:
		}
	}
	return all
}

// Live returns the runs that have not ended, those that wait for their turn among them.
func (rs *Runs) Live() (live []*Run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.known() {
		if _, ended := r.Done(); !ended {
			live = append(live, r)
		}
	}
	return live
}

// Running is how many commands run now.
func (rs *Runs) Running() (count int) {
	for _, r := range rs.Live() {
		if r.hasBegun() {
			count++
		}
	}
	return count
}

// List returns the newest of all known runs, in the order of their arrival, and whether there are more.
func (rs *Runs) List(most int) ([]*Run, bool) {
	rs.mu.Lock()
	all := rs.known()
	rs.mu.Unlock()
	slices.SortFunc(all, func(a, b *Run) int { return a.created.Compare(b.created) })
	more := len(all) > most
	return all[len(all)-min(len(all), most):], more
}

// KillOf ends the live runs that a token started, and returns when they are gone.
func (rs *Runs) KillOf(owner [sha256.Size]byte) {
	var killing sync.WaitGroup
	for _, r := range rs.Live() {
		if r.spec.owner == owner {
			killing.Go(func() { r.Kill() })
		}
	}
	killing.Wait()
}

// Disk is how many bytes all spools hold on disk.
func (rs *Runs) Disk() (bytes int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.known() {
		bytes += r.stdout.OnDisk() + r.stderr.OnDisk()
	}
	return bytes
}

// Close refuses further starts.
func (rs *Runs) Close() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.DropAll()
}

package main

import (
	"crypto/sha256"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, map[string]any{
		"sandbox": s.config.Sandbox,
		"version": agentVersion,
		"uptime":  time.Since(s.started).Seconds(),
		"pid":     os.Getpid(),
		"running": s.runs.Running(),
	})
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	own, children := usage(syscall.RUSAGE_SELF), usage(syscall.RUSAGE_CHILDREN)
	return answer(w, map[string]any{
		"rss_bytes":         residentBytes(),
		"cpu_seconds":       own,
		"commands_cpu":      children,
		"uptime":            time.Since(s.started).Seconds(),
		"execs_running":     s.runs.Running(),
		"execs_total":       s.runs.total.Load(),
		"spool_bytes":       s.runs.Disk(),
		"requests_total":    s.requests.Load(),
		"requests_open":     s.open.Load(),
		"tunnels_open":      s.tunnels.Load(),
		"forwards_open":     s.forwards.Load(),
		"orphans_collected": s.runs.reaper.Orphans(),
	})
}

func usage(who int) float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(who, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return -1
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

func (s *Server) tokenMint(w http.ResponseWriter, r *http.Request) error {
	ttl, err := number(r.URL.Query(), "ttl", 0)
	if err != nil {
		return err
	}
	token, err := s.auth.Mint(time.Duration(ttl) * time.Second)
	if err != nil {
		return err
	}
	return answer(w, map[string]any{"token": token, "sandbox": s.config.Sandbox})
}

// tokenRevoke ends a token and the commands that were started with it.
func (s *Server) tokenRevoke(w http.ResponseWriter, r *http.Request) error {
	body := make([]byte, tokenMax)
	n, _ := patientBody(w, r).Read(body)
	digest := sha256.Sum256(body[:n])
	if s.auth.Revoke(digest) {
		s.runs.KillOf(digest)
	}
	return answer(w, map[string]bool{"revoked": true})
}

// killAll leaves only the agent: what runs in the sandbox is gone when it answers.
func (s *Server) killAll(w http.ResponseWriter, _ *http.Request) error {
	s.runs.DropAll()
	if !killDescendants() {
		return fault(http.StatusInternalServerError, "kill_failed", "some processes did not end within %v", killPatience)
	}
	return answer(w, map[string]bool{"killed": true})
}

func (s *Server) shutdown(w http.ResponseWriter, _ *http.Request) error {
	err := answer(w, map[string]bool{"stopping": true})
	_ = http.NewResponseController(w).Flush()
	s.stop()
	return err
}

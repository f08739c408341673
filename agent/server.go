package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	headerPatience = 15 * time.Second
	idlePatience   = 10 * time.Minute
	bodyPatience   = 60 * time.Second // without any progress
)

// Server binds the routes to the parts.
type Server struct {
	config   *Config
	auth     *Auth
	runs     *Runs
	baseline *Baseline // nil without --baseline
	started  time.Time
	requests atomic.Int64
	open     atomic.Int64
	tunnels  atomic.Int64
	forwards atomic.Int64
	stop     func()
	renew    func(next renewal)
}

type handler func(http.ResponseWriter, *http.Request) error

// routes is the whole protocol; docs/reference/agent-protocol.md describes each line.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		scope   Scope
		handle  handler
	}{
		{"GET /v1/health", scopeWork, s.health},
		{"GET /v1/metrics", scopeWork, s.metrics},
		{"POST /v1/exec", scopeWork, s.exec},
		{"GET /v1/exec", scopeWork, s.execList},
		{"GET /v1/exec/{id}", scopeWork, s.execStatus},
		{"GET /v1/exec/{id}/pty", scopeWork, s.execTerminal},
		{"POST /v1/exec/{id}/resize", scopeWork, s.execResize},
		{"POST /v1/exec/{id}/hangup", scopeWork, s.execHangUp},
		{"GET /v1/exec/{id}/output", scopeWork, s.execOutput},
		{"POST /v1/exec/{id}/stdin", scopeWork, s.execStdin},
		{"POST /v1/exec/{id}/signal", scopeWork, s.execSignal},
		{"GET /v1/files", scopeWork, s.asUser(s.fileRead)},
		{"PUT /v1/files", scopeWork, s.asUser(s.fileWrite)},
		{"DELETE /v1/files", scopeWork, s.asUser(s.fileRemove)},
		{"GET /v1/files/stat", scopeWork, s.asUser(s.fileStat)},
		{"GET /v1/files/list", scopeWork, s.asUser(s.fileList)},
		{"POST /v1/files/mkdir", scopeWork, s.asUser(s.fileMkdir)},
		{"POST /v1/files/move", scopeWork, s.asUser(s.fileMove)},
		{"GET /v1/tree", scopeWork, s.asUser(s.treeRead)},
		{"PUT /v1/tree", scopeWork, s.asUser(s.treeWrite)},
		{"GET /v1/changes", scopeRoot, s.changesRead},
		{"PUT /v1/changes", scopeRoot, s.changesApply},
		{"GET /v1/forward/{port}", scopeRoot, s.forward},
		{"POST /v1/tunnel", scopeRoot, s.tunnel},
		{"POST /v1/tokens", scopeRoot, s.tokenMint},
		{"DELETE /v1/tokens", scopeRoot, s.tokenRevoke},
		{"POST /v1/kill", scopeRoot, s.killAll},
		{"POST /v1/restart", scopeRoot, s.restart},
		{"POST /v1/shutdown", scopeRoot, s.shutdown},
	} {
		mux.Handle(route.pattern, s.guarded(route.scope, route.handle))
	}
	mux.HandleFunc("GET /v1/proof", s.proof)
	mux.Handle("/", s.guarded(scopeWork, func(_ http.ResponseWriter, r *http.Request) error {
		return fault(http.StatusNotFound, "no_route", "no such call: %s %s", r.Method, r.URL.Path)
	}))
	return mux
}

func (s *Server) guarded(scope Scope, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		s.open.Add(1)
		defer s.open.Add(-1)
		sent := &sentWriter{ResponseWriter: w}
		err := s.auth.Check(r, scope)
		if err == nil {
			err = handle(sent, r)
		}
		if err == nil {
			return
		}
		if sent.begun {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		writeFault(w, err)
	})
}

// sentWriter knows whether the answer has begun, after which an error can only cut the connection.
type sentWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *sentWriter) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *sentWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

func (w *sentWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.begun = w.begun || err == nil
	return conn, buffered, err
}

func (w *sentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: headerPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    64 << 10,
	}
}

func answer(w http.ResponseWriter, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}

// patientReader ends a body that makes no progress.
type patientReader struct {
	r       *http.Request
	control *http.ResponseController
}

func patientBody(w http.ResponseWriter, r *http.Request) *patientReader {
	return &patientReader{r, http.NewResponseController(w)}
}

func (p *patientReader) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(bodyPatience))
	n, err := p.r.Body.Read(b)
	if err != nil {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// patientWriter ends an answer that nobody takes.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func patientAnswer(w http.ResponseWriter) *patientWriter {
	return &patientWriter{w, http.NewResponseController(w)}
}

func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(bodyPatience))
	n, err := p.ResponseWriter.Write(b)
	_ = p.control.SetWriteDeadline(time.Time{})
	return n, err
}

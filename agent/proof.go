package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"time"
)

const (
	nonceMin = 32
	nonceMax = 128
)

// proofName is what a caller calls a token by without saying it.
func proofName(digest [sha256.Size]byte) string { return keyed(digest, "orchard-agent-name") }

func keyed(digest [sha256.Size]byte, parts ...string) string {
	mac := hmac.New(sha256.New, digest[:])
	for i, part := range parts {
		if i > 0 {
			mac.Write([]byte{0})
		}
		mac.Write([]byte(part))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// Prove answers a caller who has yet to learn whether this is the agent that its token is for. Whoever names no token
// that is good is told nothing.
func (a *Auth) Prove(name, nonce, sandbox string) (string, error) {
	if len(nonce) < nonceMin || len(nonce) > nonceMax {
		return "", fault(http.StatusBadRequest, "bad_request", "nonce has %d to %d characters", nonceMin, nonceMax)
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	var digest [sha256.Size]byte
	known := 0
	for _, g := range a.grants {
		if subtle.ConstantTimeCompare([]byte(name), []byte(g.name)) == 1 && (g.expires.IsZero() || time.Now().Before(g.expires)) {
			known, digest = 1, g.digest
		}
	}
	if known == 0 {
		return "", fault(http.StatusUnauthorized, "unauthorized", "the token is missing or wrong")
	}
	if subtle.ConstantTimeCompare([]byte(sandbox), []byte(a.sandbox)) != 1 {
		return "", fault(http.StatusMisdirectedRequest, "wrong_sandbox", "this agent serves another sandbox")
	}
	return keyed(digest, "orchard-agent-proof", nonce, a.sandbox), nil
}

// proof is the one call that brings no token: it is asked before the token is sent.
func (s *Server) proof(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	query := r.URL.Query()
	told, err := s.auth.Prove(query.Get("token"), query.Get("nonce"), r.Header.Get(sandboxHeader))
	if err != nil {
		writeFault(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte(told))
}

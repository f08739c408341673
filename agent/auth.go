package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	sandboxHeader = "X-Orchard-Sandbox"
	tokensMax     = 1024
)

// Scope is what a token may do: work is exec and files, root is everything.
type Scope int

const (
	scopeWork Scope = iota
	scopeRoot
)

type grant struct {
	digest  [sha256.Size]byte
	name    string // see Prove
	scope   Scope
	expires time.Time // zero is never
}

func newGrant(token []byte, scope Scope) grant {
	digest := sha256.Sum256(token)
	return grant{digest: digest, name: proofName(digest), scope: scope}
}

// Auth checks the two things demanded of every call. Only digests of tokens are kept.
type Auth struct {
	sandbox string
	mu      sync.RWMutex
	grants  []grant
}

func newAuth(sandbox string, token []byte) *Auth {
	return &Auth{sandbox: sandbox, grants: []grant{newGrant(token, scopeRoot)}}
}

// bearer is the digest of the token that a call brings.
func bearer(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
}

// Check compares in constant time with every token, so that time tells nothing of which one matched.
func (a *Auth) Check(r *http.Request, needed Scope) error {
	ok := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
	digest := bearer(r)
	a.mu.RLock()
	defer a.mu.RUnlock()
	known, scope := 0, scopeWork
	for _, g := range a.grants {
		if subtle.ConstantTimeCompare(digest[:], g.digest[:]) == 1 && (g.expires.IsZero() || time.Now().Before(g.expires)) {
			known, scope = 1, max(scope, g.scope)
		}
	}
	if !ok || known == 0 {
		return fault(http.StatusUnauthorized, "unauthorized", "the token is missing or wrong")
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(sandboxHeader)), []byte(a.sandbox)) != 1 {
		return fault(http.StatusMisdirectedRequest, "wrong_sandbox", "this agent serves another sandbox")
	}
	if scope < needed {
		return fault(http.StatusForbidden, "forbidden", "this token may use exec and files only")
	}
	return nil
}

// Mint makes a token for exec and files; ttl 0 lasts as long as the agent.
func (a *Auth) Mint(ttl time.Duration) (string, error) {
	token := rand.Text() + rand.Text()
	g := newGrant([]byte(token), scopeWork)
	if ttl > 0 {
		g.expires = time.Now().Add(ttl)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.grants[:0]
	for _, old := range a.grants {
		if old.expires.IsZero() || time.Now().Before(old.expires) {
			kept = append(kept, old)
		}
	}
	if a.grants = kept; len(kept) >= tokensMax {
		return "", fault(http.StatusTooManyRequests, "too_many_tokens", "%d tokens are in use", tokensMax)
	}
	a.grants = append(a.grants, g)
	return token, nil
}

// Revoke ends a token that was minted, and tells whether there was one; the root token stays.
func (a *Auth) Revoke(digest [sha256.Size]byte) (revoked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.grants[:0]
	for _, g := range a.grants {
		if g.scope != scopeRoot && subtle.ConstantTimeCompare(g.digest[:], digest[:]) == 1 {
			revoked = true
		} else {
			kept = append(kept, g)
		}
	}
	a.grants = kept
	return revoked
}

// Lock ends every token: nobody gets in any more.
func (a *Auth) Lock() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grants = nil
}

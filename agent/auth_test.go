package main

import (
	"crypto/sha256"
	"net/http"
	"testing"
	"time"
)

func request(token, sandbox string) *http.Request {
	return &http.Request{Header: http.Header{
		"Authorization": {"Bearer " + token},
		sandboxHeader:   {sandbox},
	}}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return asFault(err).Code
}

func TestAuthDemandsTokenAndSandbox(t *testing.T) {
	auth := newAuth("box", []byte("root-token"))
	minted, err := auth.Mint(0)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := auth.Mint(time.Nanosecond)
	time.Sleep(time.Millisecond)
	for _, c := range []struct {
		token, sandbox string
		scope          Scope
		code           string
	}{
		{"root-token", "box", scopeRoot, ""},
		{"root-token", "other", scopeRoot, "wrong_sandbox"},
		{"root-toke", "box", scopeWork, "unauthorized"},
		{"", "box", scopeWork, "unauthorized"},
		{minted, "box", scopeWork, ""},
		{minted, "box", scopeRoot, "forbidden"},
		{old, "box", scopeWork, "unauthorized"},
	} {
		if code := codeOf(auth.Check(request(c.token, c.sandbox), c.scope)); code != c.code {
			t.Errorf("%q %q: %q, not %q", c.token, c.sandbox, code, c.code)
		}
	}
	if !auth.Revoke(sha256.Sum256([]byte(minted))) {
		t.Fatal("a minted token was not revoked")
	}
	if auth.Revoke(sha256.Sum256([]byte("root-token"))) {
		t.Fatal("the root token was revoked")
	}
	if codeOf(auth.Check(request(minted, "box"), scopeWork)) != "unauthorized" {
		t.Error("a revoked token still works")
	}
	if auth.Check(request("root-token", "box"), scopeRoot) != nil {
		t.Error("the root token was revoked")
	}
}

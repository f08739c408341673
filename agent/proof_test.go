package main

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

func TestOnlyWhoNamesAGoodTokenIsGivenAProof(t *testing.T) {
	auth := newAuth("box", []byte("root-token"))
	minted, _ := auth.Mint(0)
	old, _ := auth.Mint(time.Nanosecond)
	time.Sleep(time.Millisecond)
	nonce := strings.Repeat("n", nonceMin)
	named := func(token string) string { return proofName(sha256.Sum256([]byte(token))) }
	for _, c := range []struct{ name, nonce, sandbox, code string }{
		{named("root-token"), nonce, "box", ""},
		{named(minted), nonce, "box", ""},
		{named(old), nonce, "box", "unauthorized"},
		{named("root-toke"), nonce, "box", "unauthorized"},
		{"", nonce, "box", "unauthorized"},
		{named("root-token"), nonce, "other", "wrong_sandbox"},
		{named("root-token"), "short", "box", "bad_request"},
		{named("root-token"), strings.Repeat("n", nonceMax+1), "box", "bad_request"},
	} {
		proof, err := auth.Prove(c.name, c.nonce, c.sandbox)
		if codeOf(err) != c.code || (proof == "") != (c.code != "") {
			t.Errorf("%q %q %q: %q, %q", c.name, c.nonce, c.sandbox, proof, codeOf(err))
		}
	}
	one, _ := auth.Prove(named("root-token"), nonce, "box")
	two, _ := auth.Prove(named(minted), nonce, "box")
	three, _ := auth.Prove(named("root-token"), nonce+"n", "box")
	if one == two || one == three || one == named("root-token") {
		t.Error("a proof is good for more than its token and its nonce")
	}
	auth.Lock()
	if _, err := auth.Prove(named("root-token"), nonce, "box"); codeOf(err) != "unauthorized" {
		t.Error("a token that has ended is proven")
	}
}

package main

import "testing"

func TestTokensAreDerivedAsTheProtocolSays(t *testing.T) {
	seed := []byte("0123456789abcdef0123456789abcdef")
	const want = "31112e3fc9139082622dd6a08cfc62c6ce54f48de6138dc4cfa5410548bd7ff2"
	if got := deriveToken(seed, "box", "uid"); got != want {
		t.Error(got)
	}
	if deriveToken(seed, "box", "uid") == deriveToken(seed, "boxu", "id") {
		t.Error("the parts of what is signed run together")
	}
}

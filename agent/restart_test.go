package main

import (
	"slices"
	"testing"
)

func TestARenewedAgentReadsItsTokenFromADescriptorAlone(t *testing.T) {
	given := []string{"agent", "--token-file", "/run/t", "--listen=tcp:[::]:1", "-ready-fd=4", "--workdir", "/w", "--token-fd=3"}
	want := []string{"agent", "--listen=tcp:[::]:1", "--workdir", "/w", "--token-fd", "9"}
	if got := renewedArgs(given, 9); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestAnAgentOnAnInheritedSocketCannotStartAnew(t *testing.T) {
	for address, able := range map[string]bool{"fd:3": false, "tcp:[::]:1": true, "unix:/x": true} {
		if restartable(&Config{Listen: []string{address}, LifeFd: -1}) != able {
			t.Errorf("%s: restartable is not %v", address, able)
		}
	}
	if restartable(&Config{Listen: []string{"tcp:[::]:1"}, LifeFd: 5}) {
		t.Error("a lifeline would be lost")
	}
}

func TestVariablesOfARenewalReplaceThoseOfTheOldAgent(t *testing.T) {
	next, err := readRenewal([]byte(" 0123456789abcdef\n\x00A=new\x00C=with=sign\x00D="))
	if err != nil || string(next.token) != "0123456789abcdef" {
		t.Fatalf("got %v, %v", next, err)
	}
	want := []string{"B=kept", "A=new", "C=with=sign", "D="}
	if got := mergedEnv([]string{"A=old", "B=kept"}, next.env); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestARenewalWithoutATokenOrWithANamelessVariableIsRefused(t *testing.T) {
	for _, body := range []string{"short", "\x00A=1", "0123456789abcdef\x00=1", "0123456789abcdef\x00A", "0123456789abcdef\x00"} {
		if _, err := readRenewal([]byte(body)); err == nil {
			t.Errorf("%q was taken", body)
		}
	}
}

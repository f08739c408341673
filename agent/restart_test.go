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

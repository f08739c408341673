package main

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWalkOrderIsThatOfAWalk(t *testing.T) {
	want := []string{"/a", "/a/b", "/a/b/c", "/a/c", "/a b", "/a.b", "/a.b/x", "/a0", "/b"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, walkOrder)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestATerritoryHoldsWhatIsItsOwn(t *testing.T) {
	land := &Territory{not: map[string]bool{"/proc": true, "/mnt/a b": true, "/etc/hosts": true}}
	for path, own := range map[string]bool{
		"/etc": true, "/etc/hostsy": true, "/etc/hosts": false, "/mnt": true, "/mnt/a b": false, "/mnt/a b/c/d": false,
		"/mnt/a": true, "/proc/1/mem": false, "/process": true, "/x/proc": true,
	} {
		if land.reaches(path) != own {
			t.Errorf("%s: %v", path, !own)
		}
	}
}

func TestNamesOfMountsAreUnescaped(t *testing.T) {
	for text, want := range map[string]string{`/a\040b\134`: `/a b\`, `/plain`: `/plain`, `/end\04`: `/end\04`} {
		if got := unescapeMount(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func baselineOf(t *testing.T, content string) *Baseline {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(content))
	_ = w.Close()
	path := filepath.Join(t.TempDir(), "baseline")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &Baseline{file}
}

func TestADamagedBaselineIsNoticed(t *testing.T) {
	line := "/a\x00\x00\x00\x00\x00\x00\x00\x00\x07"
	whole, err := baselineOf(t, baselineMagic+line).Read()
	if err != nil || whole.Path != "/a" || whole.Ctime != 7 || whole.Next() != nil || whole.Path != "" {
		t.Fatal(err, whole)
	}
	for _, content := range []string{
		"", "something else\n", baselineMagic + line[:5], baselineMagic + "/no end",
		baselineMagic + "\x0000000000", baselineMagic + strings.Repeat("x", 2*baselinePathMax),
	} {
		if _, err := baselineOf(t, content).Read(); err == nil {
			t.Errorf("%.40q passes for a baseline", content)
		}
	}
}

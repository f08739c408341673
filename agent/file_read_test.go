package main

import "testing"

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		text       string
		start, end int64
		partial    bool
		ok         bool
	}{
		{"", 0, 10, false, true},
		{"bytes=0-0", 0, 1, true, true},
		{"bytes=3-", 3, 10, true, true},
		{"bytes=3-99", 3, 10, true, true},
		{"bytes=-4", 6, 10, true, true},
		{"bytes=-40", 0, 10, true, true},
		{"bytes=10-", 0, 0, false, false},
		{"bytes=5-4", 0, 0, false, false},
		{"bytes=-0", 0, 0, false, false},
		{"bytes=a-b", 0, 0, false, false},
		{"items=0-1", 0, 0, false, false},
		{"bytes=0-1,3-4", 0, 0, false, false},
	} {
		start, end, partial, err := rangeOf(c.text, 10)
		if (err == nil) != c.ok || start != c.start || end != c.end || partial != c.partial {
			t.Errorf("%q: %d-%d %v %v", c.text, start, end, partial, err)
		}
	}
}

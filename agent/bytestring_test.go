package main

import (
	"encoding/json"
	"testing"
)

func TestBytesRoundTrip(t *testing.T) {
	for _, text := range []string{"", "plain", "é\n\"\\", "\xff\xfe", "a\x80b", "{\"b64\":1}"} {
		raw, err := json.Marshal(Bytes(text))
		if err != nil {
			t.Fatal(err)
		}
		var back Bytes
		if err := json.Unmarshal(raw, &back); err != nil || string(back) != text {
			t.Fatalf("%q became %s, then %q (%v)", text, raw, back, err)
		}
	}
}

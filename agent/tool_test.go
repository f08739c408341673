package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

const offers = `[{"name":"note","description":"Keeps a note.\nIn a file.","parameters":{"type":"object","required":["text"],
"properties":{"text":{"type":"string","description":"What to keep."},"count":{"type":"integer"},"rate":{"type":"number"},
"loud":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},"ids":{"type":"array","items":{"type":"integer"}},
"more":{"type":"object"},"level":{"enum":["low","high"]},"either":{"type":["integer","string"]},"any":{},
"odd":{"type":5,"description":7}}}}]`

func noteOffer(t *testing.T) *ToolOffer {
	t.Helper()
	var all []ToolOffer
	if err := json.Unmarshal([]byte(offers), &all); err != nil {
		t.Fatal(err)
	}
	return &all[0]
}

func TestFlagsBecomeWhatTheSchemaSays(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--text hi", `{"text":"hi"}`},
		{"--text=a=b", `{"text":"a=b"}`},
		{"--text 5", `{"text":"5"}`},
		{"--text {}", `{"text":"{}"}`},
		{"--count 12345678901234567890", `{"count":12345678901234567890}`},
		{"--rate 1e3", `{"rate":1e3}`},
		{"--loud", `{"loud":true}`},
		{"--loud --text x", `{"loud":true,"text":"x"}`},
		{"--loud false", `{"loud":false}`},
		{"--no-loud", `{"loud":false}`},
		{"--tags a --tags 2", `{"tags":["a","2"]}`},
		{`--tags ["a","b"]`, `{"tags":["a","b"]}`},
		{"--ids 1 --ids 2", `{"ids":[1,2]}`},
		{`--more {"k":[1]}`, `{"more":{"k":[1]}}`},
		{"--level high", `{"level":"high"}`},
		{"--either 5", `{"either":5}`},
		{"--either 5x", `{"either":"5x"}`},
		{"--any [1]", `{"any":[1]}`},
		{"--any [1", `{"any":"[1"}`},
		{"--odd x", `{"odd":"x"}`},
	} {
		got, err := flagArguments(noteOffer(t), strings.Fields(c.line))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.line, got, err, c.want)
		}
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	for line, word := range map[string]string{
		"--nope 1":          "takes no --nope",
		"--no-text":         "takes no --no-text",
		"--text":            "wants a value",
		"--count many":      "wants integer",
		"--count 1.5":       "wants integer",
		"--ids x":           "wants integer",
		"--more [1]":        "wants object",
		"--text a --text b": "given twice",
		"text":              "no --key",
		"--":                "no --key",
	} {
		got, err := flagArguments(noteOffer(t), strings.Fields(line))
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %s, %v; want %q", line, got, err, word)
		}
	}
}

// serve answers as the driver does, and keeps what it was sent.
func serveTools(t *testing.T, status int, answer string) *[]string {
	t.Helper()
	sent := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*sent = append(*sent, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		if r.Method == http.MethodGet && status == http.StatusOK {
			_, _ = io.WriteString(w, offers)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv("ORCHARD_TOOLS_URL", server.URL+"/tools")
	t.Setenv("ORCHARD_TOOLS_KEY", "k")
	return sent
}

func runTool(in string, args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	code = toolMain(args, toolStreams{in: strings.NewReader(in), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestACallPrintsTextAndKeepsPictures(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	sent := serveTools(t, 200, `{"content":[{"type":"text","text":"kept"},
		{"type":"image","data":"AAEC","mimeType":"image/png"}],"is_error":false,"ends":false}`)
	code, out, err := runTool("", "note", `{"text": "a"}`)
	lines := strings.Split(out, "\n")
	if code != 0 || err != "" || lines[0] != "kept" || (*sent)[0] != `POST /tools/call/note Bearer k {"text": "a"}` {
		t.Fatalf("%d %q %q %q", code, out, err, *sent)
	}
	path := strings.TrimSuffix(strings.TrimPrefix(lines[1], "[image/png: "), "]")
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, []byte{0, 1, 2}) || !strings.HasSuffix(path, ".png") {
		t.Fatalf("%q: %v %v", path, data, err)
	}
}

func TestArgumentsMayComeFromStandardInputAndFlags(t *testing.T) {
	sent := serveTools(t, 200, `{"content":[]}`)
	for _, args := range [][]string{{"note", "-"}, {"note", "--text", "x"}, {"note"}, {"call", "note", "{}"}} {
		if code, _, err := runTool(`{"text":"piped"}`, args...); code != 0 {
			t.Errorf("%v: %s", args, err)
		}
	}
	want := []string{`{"text":"piped"}`, "", `{"text":"x"}`, "{}", "{}"}
	for i, body := range want {
		if !strings.HasSuffix((*sent)[i], " "+body) {
			t.Errorf("%q does not end with %q", (*sent)[i], body)
		}
	}
}

func TestAFailedCallGoesToStandardError(t *testing.T) {
	serveTools(t, 200, `{"content":[{"type":"text","text":"no such page"}],"is_error":true}`)
	if code, out, err := runTool("", "note"); code != 1 || out != "" || err != "no such page\n" {
		t.Fatalf("%d %q %q", code, out, err)
	}
}

func TestRefusalsKeepTheirWords(t *testing.T) {
	for status, want := range map[int]int{400: 2, 404: 2, 401: 1, 403: 1, 413: 1, 500: 1, 301: 1} {
		serveTools(t, status, `{"error":{"message":"because"}}`)
		if code, _, err := runTool("", "note"); code != want || !strings.Contains(err, "because") {
			t.Errorf("%d: %d %q", status, code, err)
		}
		serveTools(t, status, `<html>`)
		if code, _, err := runTool("", "note"); code == 0 || err == "" {
			t.Errorf("%d: %d %q", status, code, err)
		}
	}
}

func TestBrokenAnswersAreErrors(t *testing.T) {
	for _, answer := range []string{"", "[]", `{"content":5}`, `{"content":[{"type":"image","data":"%%"}]}`} {
		serveTools(t, 200, answer)
		if code, out, err := runTool("", "note"); code != 1 || out != "" || err == "" {
			t.Errorf("%q: %d %q %q", answer, code, out, err)
		}
	}
}

func TestListAndHelpSayWhatThereIs(t *testing.T) {
	serveTools(t, 200, "")
	if _, out, _ := runTool("", "list"); out != "note\tKeeps a note.\n" {
		t.Errorf("%q", out)
	}
	if _, out, _ := runTool("", "list", "--json"); !json.Valid([]byte(out)) {
		t.Errorf("%q", out)
	}
	for _, args := range [][]string{{"help", "note"}, {"note", "--help"}} {
		_, out, _ := runTool("", args...)
		for _, part := range []string{"In a file.", "--text  string, required", "What to keep.", `one of ["low","high"]`} {
			if !strings.Contains(out, part) {
				t.Errorf("%v: %q is missing in %s", args, part, out)
			}
		}
	}
}

func TestMisuseIsToldWithoutAsking(t *testing.T) {
	sent := serveTools(t, 200, "")
	for _, args := range [][]string{{}, {"call"}, {"note", "[]"}, {"note", "null"}, {"note", "{"}, {"list", "all"}} {
		if code, out, err := runTool("", args...); code != 2 || out != "" || err == "" {
			t.Errorf("%v: %d %q %q", args, code, out, err)
		}
	}
	if len(*sent) != 0 {
		t.Errorf("%q", *sent)
	}
	t.Setenv("ORCHARD_TOOLS_KEY", "")
	if code, _, err := runTool("", "list"); code != 2 || !strings.Contains(err, "ORCHARD_TOOLS_URL") {
		t.Errorf("%d %q", code, err)
	}
	if code, out, _ := runTool("", "version"); code != 0 || out != toolVersion+"\n" {
		t.Errorf("%d %q", code, out)
	}
}

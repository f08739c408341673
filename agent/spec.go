package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
)

const (
	inlineStdinMax = 1 << 20
	specMax        = 16 << 20
	outputDefault  = 16 << 20
	outputMax      = 1 << 30
	noteMax        = 8 << 10
	maxTimeout     = 9e9 // seconds, almost three centuries: what a time.Duration can hold
)

// ExecSpec is what to run. Exactly one of Argv and Script is set.
type ExecSpec struct {
	ID       string        `json:"id"`
	Argv     []Bytes       `json:"argv,omitempty"`
	Script   *Bytes        `json:"script,omitempty"`
	Shell    Bytes         `json:"shell,omitempty"`
	Cwd      Bytes         `json:"cwd,omitempty"`
	Env      [][2]Bytes    `json:"env,omitempty"`
	ClearEnv bool          `json:"clear_env,omitempty"`
	User     string        `json:"user,omitempty"`
	Timeout  float64       `json:"timeout,omitempty"` // seconds; 0 is none
	Stdin    string        `json:"stdin,omitempty"`   // "" (/dev/null), "inline" or "stream"
	Terminal *TerminalSize `json:"pty,omitempty"`     // input and outputs are one terminal of this size
	Output   int64         `json:"output_limit,omitempty"`
	Lane     string        `json:"lane,omitempty"` // runs of one lane come one after the other
	Note     string        `json:"note,omitempty"` // told again with the run: what whoever started it wants to know later

	input  []byte
	digest [sha256.Size]byte
	owner  [sha256.Size]byte // of the token that brought it
	weight int64             // bytes it holds while it waits
}

// readSpec parses a length-prefixed JSON spec followed by the inline input.
func readSpec(body io.Reader) (*ExecSpec, error) {
	var length uint32
	if err := binary.Read(body, binary.BigEndian, &length); err != nil {
		return nil, badRequest("the body must begin with the length of the spec: %v", err)
	}
	if length > specMax {
		return nil, fault(http.StatusRequestEntityTooLarge, "too_large", "a spec of %d bytes; %d are taken", length, specMax)
	}
	var raw bytes.Buffer
	if _, err := io.CopyN(&raw, body, int64(length)); err != nil {
		return nil, badRequest("the spec is cut: %v", err)
	}
	spec := &ExecSpec{digest: sha256.Sum256(raw.Bytes())}
	decoder := json.NewDecoder(&raw)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		return nil, badRequest("the spec is not valid: %v", err)
	}
	err := spec.finish(body)
	spec.weight = int64(length) + int64(len(spec.input))
	return spec, err
}

func (s *ExecSpec) finish(body io.Reader) (err error) {
	switch {
	case s.ID == "" || len(s.ID) > 128:
		return badRequest("id must have 1 to 128 characters")
	case s.Terminal != nil && s.Stdin == "inline":
		return badRequest("what is typed at a terminal is streamed, not inline")
	case len(s.Lane) > 128:
		return badRequest("lane must have at most 128 characters")
	case len(s.Note) > noteMax:
		return badRequest("note must have at most %d bytes", noteMax)
	case (len(s.Argv) > 0) == (s.Script != nil):
		return badRequest("exactly one of argv and script must be given")
	case s.Timeout < 0:
		return badRequest("timeout must not be negative")
	case s.Output < 0 || s.Output > outputMax:
		return badRequest("output_limit must be between 0 and %d", outputMax)
	case s.Stdin != "" && s.Stdin != "inline" && s.Stdin != "stream":
		return badRequest("stdin must be inline or stream, not %q", s.Stdin)
	}
	if s.Terminal != nil {
		s.Stdin = "stream"
		if err := s.Terminal.check(); err != nil {
			return err
		}
	}
	if s.Output == 0 {
		s.Output = outputDefault
	}
	if s.Stdin == "inline" {
		s.input, err = io.ReadAll(io.LimitReader(body, inlineStdinMax+1))
		if err == nil && len(s.input) > inlineStdinMax {
			err = fault(http.StatusRequestEntityTooLarge, "too_large", "inline input takes %d bytes: stream it", inlineStdinMax)
		}
	}
	return err
}

func badRequest(format string, args ...any) *Fault {
	return fault(http.StatusBadRequest, "bad_request", format, args...)
}

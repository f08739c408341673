package main

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Bytes is a byte string in JSON: a plain string where it is valid UTF-8, else {"b64": "..."}.
// Paths, arguments and environment values on Linux are bytes, and must come back as they were.
type Bytes string

type base64Form struct {
	B64 string `json:"b64"`
}

func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return json.Marshal(string(b))
	}
	return json.Marshal(base64Form{base64.StdEncoding.EncodeToString([]byte(b))})
}

func (b *Bytes) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var form base64Form
		if err := json.Unmarshal(data, &form); err != nil {
			return err
		}
		raw, err := base64.StdEncoding.DecodeString(form.B64)
		*b = Bytes(raw)
		return err
	}
	var text string
	err := json.Unmarshal(data, &text)
	*b = Bytes(text)
	return err
}

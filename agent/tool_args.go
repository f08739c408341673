package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
)

const toolInputMax = 32 << 20

// toolSchema is what a JSON Schema says about one argument, as far as a command line cares.
type toolSchema struct {
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Enum        json.RawMessage `json:"enum"`
	Items       *toolSchema     `json:"items"`
}

func (s *toolSchema) types() []string {
	switch kind := s.Type.(type) {
	case string:
		return []string{kind}
	case []any:
		var names []string
		for _, one := range kind {
			if name, ok := one.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

func (s *toolSchema) may(kind string) bool {
	return slices.Contains(s.types(), kind)
}

// toolArguments is the JSON object to send.
func toolArguments(client *toolClient, name string, args []string, in io.Reader) ([]byte, error) {
	switch {
	case len(args) == 0:
		return []byte("{}"), nil
	case len(args) == 1 && args[0] == "-":
		raw, err := io.ReadAll(io.LimitReader(in, toolInputMax+1))
		if err != nil {
			return nil, misused("standard input cannot be read: %v", err)
		}
		if len(raw) > toolInputMax {
			return nil, misused("standard input is larger than %d bytes", toolInputMax)
		}
		return jsonObject(raw)
	case len(args) == 1 && !strings.HasPrefix(args[0], "--"):
		return jsonObject([]byte(args[0]))
	}
	offer, err := client.find(name)
	if err != nil {
		return nil, err
	}
	return flagArguments(offer, args)
}

func jsonObject(raw []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, misused("the arguments are to be one JSON object, or --key value pairs")
	}
	return raw, nil
}

// flagArguments reads --key value, --key=value, and for a boolean --key and --no-key. A repeated flag fills a list.
func flagArguments(offer *ToolOffer, args []string) ([]byte, error) {
	schemas, _ := offer.properties()
	values := map[string]json.RawMessage{}
	for len(args) > 0 {
		word, ok := strings.CutPrefix(args[0], "--")
		if !ok || word == "" {
			return nil, misused("%q is no --key; see `orchard-tool help %s`", args[0], offer.Name)
		}
		args = args[1:]
		key, text, given := strings.Cut(word, "=")
		schema, known := schemas[key]
		if !known {
			plain, negated := strings.CutPrefix(key, "no-")
			if no := schemas[plain]; negated && !given && no != nil && no.may("boolean") {
				values[plain] = json.RawMessage("false")
				continue
			}
			return nil, misused("the tool %s takes no --%s; see `orchard-tool help %s`", offer.Name, key, offer.Name)
		}
		if !given && schema.may("boolean") && (len(args) == 0 || !isBoolean(args[0])) {
			text, given = "true", true
		}
		if !given {
			if len(args) == 0 {
				return nil, misused("--%s wants a value", key)
			}
			text, args = args[0], args[1:]
		}
		if err := addValue(values, key, text, schema); err != nil {
			return nil, err
		}
	}
	return json.Marshal(values)
}

func isBoolean(text string) bool { return text == "true" || text == "false" }

func addValue(values map[string]json.RawMessage, key, text string, schema *toolSchema) error {
	if schema.may("array") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		items := schema.Items
		if items == nil {
			items = &toolSchema{}
		}
		item, err := items.value(key, text)
		if err != nil {
			return err
		}
		var list []json.RawMessage
		_ = json.Unmarshal(values[key], &list)
		values[key], err = json.Marshal(append(list, item))
		return err
	}
	if _, twice := values[key]; twice {
		return misused("--%s is given twice", key)
	}
	value, err := schema.value(key, text)
	values[key] = value
	return err
}

// value is the text as the schema's type: as it stands for a string, else as JSON.
func (s *toolSchema) value(key, text string) (json.RawMessage, error) {
	types := s.types()
	anything := len(types) == 0
	if slices.Equal(types, []string{"string"}) {
		return json.Marshal(text)
	}
	if json.Valid([]byte(text)) && (anything || s.fits(text)) {
		return json.RawMessage(text), nil
	}
	if anything || s.may("string") {
		return json.Marshal(text)
	}
	return nil, misused("--%s wants %s, not %q", key, strings.Join(types, " or "), text)
}

func (s *toolSchema) fits(text string) bool {
	switch text = strings.TrimSpace(text); text[0] {
	case '{':
		return s.may("object")
	case '[':
		return s.may("array")
	case '"':
		return s.may("string")
	case 't', 'f':
		return s.may("boolean")
	case 'n':
		return s.may("null")
	}
	return s.may("number") || (s.may("integer") && !strings.ContainsAny(text, ".eE"))
}

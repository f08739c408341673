package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// toolResult is what a call gave.
type toolResult struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     []byte `json:"data"`
		MimeType string `json:"mimeType"`
	} `json:"content"`
	IsError bool `json:"is_error"`
	Ends    bool `json:"ends"`
}

var pictureEndings = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
}

// show prints the result; that of a failed call is the error.
func (r *toolResult) show(out io.Writer) error {
	var words strings.Builder
	for _, part := range r.Content {
		if part.Type == "image" {
			path, err := savePicture(part.Data, part.MimeType)
			if err != nil {
				return fmt.Errorf("the picture cannot be kept: %w", err)
			}
			fmt.Fprintf(&words, "[%s: %s]\n", part.MimeType, path)
			continue
		}
		words.WriteString(part.Text)
		if !strings.HasSuffix(part.Text, "\n") {
			words.WriteByte('\n')
		}
	}
	if r.IsError {
		return errors.New(words.String())
	}
	_, err := io.WriteString(out, words.String())
	return err
}

func savePicture(data []byte, mediaType string) (string, error) {
	file, err := os.CreateTemp("", "orchard-tool-*"+pictureEndings[mediaType])
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Close())
}

func listTools(client *toolClient, args []string, out io.Writer) error {
	asJSON := slices.Equal(args, []string{"--json"})
	if len(args) > 0 && !asJSON {
		return misused("list takes --json only")
	}
	offers, err := client.list()
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(offers)
	}
	for _, offer := range offers {
		first, _, _ := strings.Cut(strings.TrimSpace(offer.Description), "\n")
		if _, err := fmt.Fprintf(out, "%s\t%s\n", offer.Name, first); err != nil {
			return err
		}
	}
	return nil
}

func describeTool(client *toolClient, args []string, out io.Writer) error {
	if len(args) != 1 {
		_, err := io.WriteString(out, toolUsage)
		return err
	}
	offer, err := client.find(args[0])
	if err != nil {
		return err
	}
	var words strings.Builder
	fmt.Fprintf(&words, "%s\n\n%s\n", offer.Name, strings.TrimSpace(offer.Description))
	schemas, required := offer.properties()
	names := make([]string, 0, len(schemas))
	for name := range schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		schemas[name].describe(&words, name, slices.Contains(required, name))
	}
	_, err = io.WriteString(out, words.String())
	return err
}

func (s *toolSchema) describe(words *strings.Builder, name string, required bool) {
	kind := strings.Join(s.types(), " or ")
	if len(s.Enum) > 0 {
		kind = "one of " + string(s.Enum)
	}
	if required {
		kind = strings.TrimPrefix(kind+", required", ", ")
	}
	fmt.Fprintf(words, "\n  --%s  %s\n", name, kind)
	if s.Description != "" {
		fmt.Fprintf(words, "      %s\n", s.Description)
	}
}

// properties are the arguments that the schema names. A schema of another shape names none.
func (o *ToolOffer) properties() (map[string]*toolSchema, []string) {
	var whole struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(o.Parameters, &whole)
	found := make(map[string]*toolSchema, len(whole.Properties))
	for name, raw := range whole.Properties {
		schema := &toolSchema{}
		_ = json.Unmarshal(raw, schema)
		found[name] = schema
	}
	return found, whole.Required
}

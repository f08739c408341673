package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const toolAnswerMax = 64 << 20

// ToolOffer is one tool as the driver lists it.
type ToolOffer struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type toolClient struct {
	url, key string
	http     *http.Client
}

// newToolClient asks no proxy and follows no redirect: the tools are beside it, at the end of the tunnel. A call may take
// as long as the tool needs.
func newToolClient(address, key string) (*toolClient, error) {
	if address == "" || key == "" {
		return nil, misused("ORCHARD_TOOLS_URL and ORCHARD_TOOLS_KEY are not set; they come with the task")
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" || parsed.Host == "" {
		return nil, misused("ORCHARD_TOOLS_URL is no http URL: %q", address)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	client := &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &toolClient{url: strings.TrimRight(address, "/"), key: key, http: client}, nil
}

func (c *toolClient) list() ([]ToolOffer, error) {
	var offers []ToolOffer
	return offers, c.ask(http.MethodGet, c.url, nil, &offers)
}

func (c *toolClient) find(name string) (*ToolOffer, error) {
	offers, err := c.list()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(offers))
	for _, offer := range offers {
		if offer.Name == name {
			return &offer, nil
		}
		names = append(names, offer.Name)
	}
	return nil, misused("there is no tool %q; there are: %s", name, strings.Join(names, ", "))
}

func (c *toolClient) call(name string, arguments []byte) (*toolResult, error) {
	result := &toolResult{}
	return result, c.ask(http.MethodPost, c.url+"/call/"+url.PathEscape(name), arguments, result)
}

func (c *toolClient) ask(method, address string, body []byte, into any) error {
	request, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return misused("%v", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		var refused *url.Error
		if errors.As(err, &refused) {
			err = refused.Err
		}
		return fmt.Errorf("the tools cannot be reached: %w", err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, toolAnswerMax+1))
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if len(raw) > toolAnswerMax {
		return fmt.Errorf("the answer is larger than %d bytes", toolAnswerMax)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

func refusal(status int, raw []byte) error {
	var told struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &told) != nil || told.Error.Message == "" {
		told.Error.Message = fmt.Sprintf("the tools answered with status %d", status)
	}
	if status == http.StatusBadRequest || status == http.StatusNotFound {
		return misused("%s", told.Error.Message)
	}
	return errors.New(told.Error.Message)
}

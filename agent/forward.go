package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const dialPatience = 10 * time.Second

// forward turns the connection into a byte stream to a port on the sandbox's own loopback.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) error {
	port, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || port == 0 {
		return badRequest("no such port: %q", r.PathValue("port"))
	}
	inner, err := dialLoopback(int(port))
	if err != nil {
		return fault(http.StatusBadGateway, "port_refused", "nothing answers on port %d inside: %v", port, err)
	}
	defer inner.Close()
	outer, buffered, err := upgrade(w, r, "orchard-stream", nil)
	if err != nil {
		return err
	}
	defer outer.Close()
	s.forwards.Add(1)
	defer s.forwards.Add(-1)
	join(outer, buffered.Reader, inner)
	return nil
}

func dialLoopback(port int) (conn net.Conn, err error) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err = net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(port)), dialPatience)
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// upgrade answers 101 with the extra headers and takes the connection over.
func upgrade(w http.ResponseWriter, r *http.Request, protocol string, extra map[string]string) (net.Conn,
	*bufio.ReadWriter, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol) {
		return nil, nil, fault(http.StatusUpgradeRequired, "upgrade_required", "ask for Upgrade: %s", protocol)
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	lines := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n"
	for name, value := range extra {
		lines += name + ": " + value + "\r\n"
	}
	if _, err := io.WriteString(conn, lines+"\r\n"); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, buffered, nil
}

type halfCloser interface{ CloseWrite() error }

func closeWrite(conn net.Conn) {
	if half, ok := conn.(halfCloser); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}

// join copies both ways; the end of one direction is passed on while the other still flows.
func join(outer net.Conn, fromOuter io.Reader, inner net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(inner, fromOuter); err != nil {
			_ = outer.Close()
		}
		closeWrite(inner)
	}()
	if _, err := io.Copy(outer, inner); err != nil {
		_ = inner.Close()
	}
	closeWrite(outer)
	<-done
}

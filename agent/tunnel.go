package main

import (
	"net"
	"net/http"
)

const tunnelStreamsMax = 1024

// tunnel listens on loopback inside and carries each accepted connection back over the one connection that asked. The
// listener lives exactly as long as that connection.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request) error {
	address := r.URL.Query().Get("listen")
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return badRequest("listen must be a loopback address with a port: %q", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fault(http.StatusConflict, "address_in_use", "cannot listen on %s: %v", address, err)
	}
	defer listener.Close()
	conn, buffered, err := upgrade(w, r, "orchard-tunnel", map[string]string{
		"X-Orchard-Listen": listener.Addr().String(),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	s.tunnels.Add(1)
	defer s.tunnels.Add(-1)
	mux := newMux(conn, buffered.Reader)
	go acceptInto(listener, mux)
	mux.Serve()
	return nil
}

func acceptInto(listener net.Listener, mux *Mux) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			mux.Close()
			return
		}
		if !mux.Open(conn) {
			_ = conn.Close()
		}
	}
}

package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Frames: 1 byte type, 4 bytes stream, 4 bytes length, then the payload; all big-endian.
const (
	frameOpen   = 1
	frameData   = 2
	frameEnd    = 3 // no more data this way
	frameReset  = 4
	frameWindow = 5 // payload: 4 bytes, how many more bytes may be sent
	framePing   = 6
	framePong   = 7

	frameHeader  = 9
	frameMax     = 64 << 10
	streamWindow = 256 << 10
	pingEvery    = 15 * time.Second
	peerPatience = 60 * time.Second
)

var errPeer = errors.New("the peer broke the tunnel protocol")

// Mux carries many streams over one connection. Each has its own window, so a slow one stops only itself.
type Mux struct {
	conn    net.Conn
	from    io.Reader
	writing sync.Mutex

	mu      sync.Mutex
	closed  bool
	next    uint32
	streams map[uint32]*muxStream
}

func newMux(conn net.Conn, from io.Reader) *Mux {
	return &Mux{conn: conn, from: from, streams: map[uint32]*muxStream{}}
}

// Open gives an accepted connection a stream; false when there are too many, or the tunnel is gone.
func (m *Mux) Open(conn net.Conn) bool {
	m.mu.Lock()
	if m.closed || len(m.streams) >= tunnelStreamsMax {
		m.mu.Unlock()
		return false
	}
	m.next++
	s := newMuxStream(m, m.next, conn)
	m.streams[s.id] = s
	m.mu.Unlock()
	if m.send(frameOpen, s.id, nil) != nil {
		return false
	}
	go s.readConn()
	go s.writeConn()
	return true
}

// Serve handles frames until the connection ends, then ends every stream.
func (m *Mux) Serve() {
	defer m.Close()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-ping.C:
				_ = m.send(framePing, 0, nil)
			case <-stop:
				return
			}
		}
	}()
	for m.receive() == nil {
	}
}

func (m *Mux) receive() error {
	var header [frameHeader]byte
	_ = m.conn.SetReadDeadline(time.Now().Add(peerPatience))
	if _, err := io.ReadFull(m.from, header[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header[5:])
	if length > frameMax {
		return errPeer
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(m.from, payload); err != nil {
		return err
	}
	return m.dispatch(header[0], binary.BigEndian.Uint32(header[1:]), payload)
}

func (m *Mux) dispatch(kind byte, id uint32, payload []byte) error {
	if kind == framePing {
		return m.send(framePong, 0, nil)
	}
	m.mu.Lock()
	s := m.streams[id]
	m.mu.Unlock()
	if s == nil {
		return nil // it ended here while the frame was on its way
	}
	switch kind {
	case frameData:
		return s.received(payload)
	case frameEnd:
		s.receivedEnd()
	case frameReset:
		s.abort()
	case frameWindow:
		if len(payload) != 4 {
			return errPeer
		}
		s.credit(int(binary.BigEndian.Uint32(payload)))
	}
	return nil
}

func (m *Mux) send(kind byte, id uint32, payload []byte) error {
	frame := make([]byte, frameHeader, frameHeader+len(payload))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], id)
	binary.BigEndian.PutUint32(frame[5:], uint32(len(payload)))
	frame = append(frame, payload...)
	m.writing.Lock()
	defer m.writing.Unlock()
	_ = m.conn.SetWriteDeadline(time.Now().Add(peerPatience))
	_, err := m.conn.Write(frame)
	if err != nil {
		_ = m.conn.Close()
	}
	return err
}

func (m *Mux) drop(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streams, id)
}

// Close ends the connection and all streams; it may be called more than once.
func (m *Mux) Close() {
	m.mu.Lock()
	m.closed = true
	streams := m.streams
	m.streams = map[uint32]*muxStream{}
	m.mu.Unlock()
	_ = m.conn.Close()
	for _, s := range streams {
		s.abort()
	}
}

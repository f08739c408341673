package main

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// muxStream is one accepted connection inside the tunnel.
type muxStream struct {
	mux  *Mux
	id   uint32
	conn net.Conn

	mu       sync.Mutex
	moved    *sync.Cond
	window   int      // what may still be sent to the peer
	queue    [][]byte // received, not yet written to conn; at most streamWindow bytes
	queued   int
	peerDone bool
	ourDone  bool
	aborted  bool
}

func newMuxStream(m *Mux, id uint32, conn net.Conn) *muxStream {
	s := &muxStream{mux: m, id: id, conn: conn, window: streamWindow}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// readConn sends what the program inside writes, as far as the window goes.
func (s *muxStream) readConn() {
	buffer := make([]byte, 32<<10)
	for {
		room := s.awaitWindow(len(buffer))
		if room == 0 {
			return
		}
		n, err := s.conn.Read(buffer[:room])
		if n > 0 {
			s.credit(-n)
			if s.mux.send(frameData, s.id, buffer[:n]) != nil {
				return
			}
		}
		if err == io.EOF {
			_ = s.mux.send(frameEnd, s.id, nil)
			s.finish(&s.ourDone)
			return
		}
		if err != nil {
			_ = s.mux.send(frameReset, s.id, nil)
			s.abort()
			return
		}
	}
}

func (s *muxStream) awaitWindow(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.window <= 0 && !s.aborted {
		s.moved.Wait()
	}
	if s.aborted {
		return 0
	}
	return min(most, s.window)
}

func (s *muxStream) credit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window += n
	s.moved.Broadcast()
}

func (s *muxStream) received(payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued += len(payload)
	if s.queued > streamWindow {
		return errPeer
	}
	s.queue = append(s.queue, payload)
	s.moved.Broadcast()
	return nil
}

func (s *muxStream) receivedEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerDone = true
	s.moved.Broadcast()
}

// writeConn writes what the peer sent, and gives the window back only then.
func (s *muxStream) writeConn() {
	for {
		payload, more := s.take()
		if !more {
			break
		}
		if _, err := s.conn.Write(payload); err != nil {
			_ = s.mux.send(frameReset, s.id, nil)
			s.abort()
			return
		}
		s.mu.Lock()
		s.queued -= len(payload)
		s.mu.Unlock()
		if s.mux.send(frameWindow, s.id, binary.BigEndian.AppendUint32(nil, uint32(len(payload)))) != nil {
			return
		}
	}
	closeWrite(s.conn)
	s.finish(nil)
}

func (s *muxStream) take() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.peerDone && !s.aborted {
		s.moved.Wait()
	}
	if s.aborted || len(s.queue) == 0 {
		return nil, false
	}
	payload := s.queue[0]
	s.queue = s.queue[1:]
	return payload, true
}

// finish closes the connection once both directions have ended.
func (s *muxStream) finish(flag *bool) {
	s.mu.Lock()
	if flag != nil {
		*flag = true
	}
	over := s.aborted || (s.ourDone && s.peerDone && s.queued == 0)
	s.mu.Unlock()
	if over {
		_ = s.conn.Close()
		s.mux.drop(s.id)
	}
}

// abort ends both directions now.
func (s *muxStream) abort() {
	s.mu.Lock()
	s.aborted = true
	s.queue = nil
	s.moved.Broadcast()
	s.mu.Unlock()
	_ = s.conn.Close()
	s.mux.drop(s.id)
}

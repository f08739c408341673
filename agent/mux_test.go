package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

func pipePair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

func frameOf(t *testing.T, from io.Reader) (kind byte, id uint32, payload []byte) {
	t.Helper()
	var header [frameHeader]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		t.Fatal(err)
	}
	payload = make([]byte, binary.BigEndian.Uint32(header[5:]))
	if _, err := io.ReadFull(from, payload); err != nil {
		t.Fatal(err)
	}
	return header[0], binary.BigEndian.Uint32(header[1:]), payload
}

func TestMuxStopsAtTheWindow(t *testing.T) {
	agentSide, driver := pipePair(t)
	mux := newMux(agentSide, agentSide)
	go mux.Serve()
	defer mux.Close()
	inner, program := pipePair(t)
	if !mux.Open(inner) {
		t.Fatal("not opened")
	}
	go func() { _, _ = program.Write(bytes.Repeat([]byte("x"), 2*streamWindow)) }()
	if kind, _, _ := frameOf(t, driver); kind != frameOpen {
		t.Fatalf("frame %d, not open", kind)
	}
	got := 0
	for got < streamWindow {
		_, _, payload := frameOf(t, driver)
		got += len(payload)
	}
	_ = driver.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, _ := driver.Read(make([]byte, 1)); n != 0 || got != streamWindow {
		t.Fatalf("%d bytes came, and more than the window of %d", got, streamWindow)
	}
}

func TestMuxRefusesAPeerThatOverrunsTheWindow(t *testing.T) {
	agentSide, driver := pipePair(t)
	mux := newMux(agentSide, agentSide)
	served := make(chan struct{})
	go func() { mux.Serve(); close(served) }()
	inner, _ := pipePair(t)
	mux.Open(inner)
	frame := make([]byte, frameHeader+frameMax)
	frame[0] = frameData
	binary.BigEndian.PutUint32(frame[1:], 1)
	binary.BigEndian.PutUint32(frame[5:], frameMax)
	go func() {
		for range 200 { // far more than the window and both socket buffers hold
			if _, err := driver.Write(frame); err != nil {
				return
			}
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, driver) }()
	select {
	case <-served:
	case <-time.After(10 * time.Second):
		t.Fatal("the tunnel goes on")
	}
}

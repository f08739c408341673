package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
)

// kept reads everything a spool still has, with the offsets where a gap ends.
func kept(t *testing.T, s *Spool) (data []byte, gaps int) {
	t.Helper()
	buffer := make([]byte, 1000)
	for cursor := int64(0); cursor < s.Size(); {
		start, n, err := s.ReadAt(buffer, cursor)
		if err != nil || n == 0 {
			t.Fatalf("read at %d: %d bytes, %v", cursor, n, err)
		}
		if start != cursor {
			gaps++
		}
		data = append(data, buffer[:n]...)
		cursor = start + int64(n)
	}
	return data, gaps
}

func onDisk(t *testing.T) func() (*os.File, error) {
	dir := t.TempDir()
	return func() (*os.File, error) { return os.CreateTemp(dir, "spool") }
}

func noDisk() (*os.File, error) { return nil, errors.New("no disk") }

func TestSpoolKeepsHeadAndTailOfAnyStream(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int64{1, 2, 7, 1000, 64 << 10, 200 << 10} {
		for _, total := range []int{0, 1, 100, 999, 1000, 1001, 64 << 10, 300 << 10} {
			whole := make([]byte, total)
			for i := range whole {
				whole[i] = byte(random.Uint32())
			}
			for _, open := range []func() (*os.File, error){onDisk(t), noDisk} {
				s := newSpool(limit, open)
				for rest := whole; len(rest) > 0; {
					n := min(1+random.IntN(50000), len(rest))
					s.Append(rest[:n])
					rest = rest[n:]
				}
				head, tail := s.Kept()
				if s.Size() != int64(total) {
					t.Fatalf("limit %d total %d: size %d", limit, total, s.Size())
				}
				if head+tail > limit || (int64(total) <= min(limit, 2*memoryCap) && head+tail != int64(total)) {
					t.Fatalf("limit %d total %d: head %d tail %d", limit, total, head, tail)
				}
				data, gaps := kept(t, s)
				want := append(append([]byte{}, whole[:head]...), whole[int64(total)-tail:]...)
				if !bytes.Equal(data, want) || gaps > 1 {
					t.Fatalf("limit %d total %d: %d bytes with %d gaps", limit, total, len(data), gaps)
				}
				s.Close()
			}
		}
	}
}

func TestSpoolGoesOnWhenItsDiskFails(t *testing.T) {
	var file *os.File
	dir := t.TempDir()
	s := newSpool(1<<20, func() (f *os.File, err error) { file, err = os.CreateTemp(dir, "spool"); return file, err })
	s.Append(bytes.Repeat([]byte("a"), 100<<10))
	_ = file.Close() // every further write fails, as on a full disk
	s.Append(bytes.Repeat([]byte("b"), 500<<10))
	s.Append([]byte("end"))
	if s.Size() != 600<<10+3 {
		t.Fatalf("size %d", s.Size())
	}
	buffer := make([]byte, 3)
	if _, n, err := s.ReadAt(buffer, s.Size()-3); err != nil || string(buffer[:n]) != "end" {
		t.Fatalf("tail %q, %v", buffer[:n], err)
	}
}

func TestSpoolFileIsOnlyMadeForLargeStreams(t *testing.T) {
	opened := 0
	s := newSpool(1<<20, func() (*os.File, error) { opened++; return nil, errors.New("no") })
	s.Append(make([]byte, spoolInMemory))
	if opened != 0 {
		t.Fatal("a small stream asked for a file")
	}
}

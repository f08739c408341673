package main

import (
	"os"
	"sync"
)

const (
	spoolInMemory = 32 << 10  // below this no file is made: most commands say little
	memoryCap     = 128 << 10 // kept of head and of tail when no disk can be written
)

// Spool keeps the head and the tail of a byte stream of any length, by absolute offset.
//
// Small streams stay in memory; larger ones go to one unlinked file (head first, then a ring for the tail). Without a
// writable disk, or when it fills, it keeps less, in memory, and the stream goes on.
type Spool struct {
	mu       sync.Mutex
	open     func() (*os.File, error)
	headCap  int64
	tailCap  int64
	headLen  int64
	tailBase int64 // absolute offset at which the ring began
	size     int64
	file     *os.File
	memory   []byte // the head, while there is no file
	ring     []byte // the tail, when it is in memory
	inMemory bool   // the disk has failed
}

func newSpool(limit int64, open func() (*os.File, error)) *Spool {
	head := limit / 2
	return &Spool{open: open, headCap: head, tailCap: limit - head}
}

// Append never fails and never blocks on a reader.
func (s *Spool) Append(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.appendHead(p)
	if len(p) > 0 {
		s.appendTail(p)
	}
}

func (s *Spool) appendHead(p []byte) []byte {
	if s.headLen < s.headCap && s.size == s.headLen {
		s.reserve(s.headLen + min(int64(len(p)), s.headCap-s.headLen))
		n := min(int64(len(p)), s.headCap-s.headLen)
		if s.file == nil {
			s.memory = append(s.memory, p[:n]...)
		} else if _, err := s.file.WriteAt(p[:n], s.headLen); err != nil {
			s.loseDisk()
			return p
		}
		s.headLen += n
		s.size += n
		p = p[n:]
		s.tailBase = s.headLen
	}
	return p
}

func (s *Spool) appendTail(p []byte) {
	if s.size == s.headLen {
		s.reserve(spoolInMemory + 1)
		if s.file == nil && int64(cap(s.ring)) == 0 && s.tailCap > memoryCap {
			s.tailCap = memoryCap
		}
	}
	for len(p) > 0 && s.tailCap > 0 {
		index := (s.size - s.tailBase) % s.tailCap
		n := min(int64(len(p)), s.tailCap-index)
		if s.file != nil && !s.inMemory {
			if _, err := s.file.WriteAt(p[:n], s.headCap+index); err != nil {
				s.loseDisk()
				continue
			}
		} else {
			if s.ring == nil {
				s.ring = make([]byte, s.tailCap)
			}
			copy(s.ring[index:], p[:n])
		}
		s.size += n
		p = p[n:]
	}
	s.size += int64(len(p))
}

// reserve moves the head to a file once it will pass want bytes.
func (s *Spool) reserve(want int64) {
	if want <= spoolInMemory || s.file != nil || s.inMemory {
		return
	}
	file, err := s.open()
	if err == nil {
		_, err = file.WriteAt(s.memory, 0)
	}
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		s.inMemory = true
		s.headCap, s.tailCap = min(s.headCap, memoryCap), min(s.tailCap, memoryCap)
		return
	}
	s.file, s.memory = file, nil
}

// loseDisk ends the head where it is and restarts the tail in memory: a full disk must not stop the command.
func (s *Spool) loseDisk() {
	s.inMemory = true
	s.tailBase = s.size
	s.tailCap = min(s.tailCap, memoryCap)
	s.ring = nil
}

// Size is the number of bytes the stream has had so far, kept or not.
func (s *Spool) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Kept is how many bytes of the head and of the tail can be read; head+tail == size when nothing was lost.
func (s *Spool) Kept() (head, tail int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headLen, s.size - s.tailStart()
}

func (s *Spool) tailStart() int64 {
	if s.size == s.headLen {
		return s.size
	}
	return max(s.tailBase, s.size-s.tailCap)
}

// ReadAt fills p from the absolute offset, or from the next kept byte after it; it returns where it began.
func (s *Spool) ReadAt(p []byte, offset int64) (start int64, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.headLen {
		want := p[:min(int64(len(p)), s.headLen-offset)]
		if s.file == nil {
			return offset, copy(want, s.memory[offset:]), nil
		}
		n, err = s.file.ReadAt(want, offset)
		return offset, n, err
	}
	offset = max(offset, s.tailStart())
	if offset >= s.size {
		return s.size, 0, nil
	}
	index := (offset - s.tailBase) % s.tailCap
	want := p[:min(int64(len(p)), s.size-offset, s.tailCap-index)]
	if s.ring != nil {
		return offset, copy(want, s.ring[index:]), nil
	}
	n, err = s.file.ReadAt(want, s.headCap+index)
	return offset, n, err
}

// OnDisk is how many bytes of disk the spool holds.
func (s *Spool) OnDisk() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return 0
	}
	return s.headLen + min(s.size-s.headLen, s.tailCap)
}

// Close gives the file back; reads after it are not allowed.
func (s *Spool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
	}
}

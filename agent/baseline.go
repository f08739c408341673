package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

const (
	baselineMagic   = "orchard-baseline 1\n"
	baselinePathMax = 1 << 20
)

// Baseline is what there was when the agent began, in the order of a walk: each path, NUL, and 8 bytes of its change
// time. With it a change is told by another time, whatever the clock does, and a deletion by a path that is missing.
type Baseline struct{ file *os.File }

// openBaseline takes the one that an earlier agent of the same sandbox has left, else makes it.
func openBaseline(config *Config) (*Baseline, error) {
	path := config.Baseline
	if path == "" {
		return nil, nil
	}
	if file, err := os.Open(path); err == nil {
		b := &Baseline{file}
		if _, err := b.Read(); err == nil {
			return b, nil
		}
		_ = file.Close()
	}
	if err := writeBaseline(path, newTerritory(config, nil)); err != nil {
		return nil, fmt.Errorf("cannot write the baseline: %w", err)
	}
	file, err := os.Open(path)
	return &Baseline{file}, err
}

func writeBaseline(path string, land *Territory) error {
	return placeFile(path, 0o400, func(file *os.File) error {
		land.not[file.Name()] = true
		defer delete(land.not, file.Name())
		packed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(packed, 64<<10)
		_, _ = out.WriteString(baselineMagic)
		walk := landWalk{land: land, lost: func(string) {}, visit: func(_ int, _, path string, info *syscall.Stat_t) error {
			_, err := out.Write(binary.BigEndian.AppendUint64(append([]byte(path), 0), uint64(info.Ctim.Nano())))
			return err
		}}
		return errors.Join(walk.run(), out.Flush(), packed.Close())
	})
}

// Read begins at the first line. One reading at a time has the file's own offset; each takes a view of its own.
func (b *Baseline) Read() (*BaselineReader, error) {
	packed, err := gzip.NewReader(bufio.NewReader(io.NewSectionReader(b.file, 0, 1<<62)))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReaderSize(packed, baselinePathMax)
	if magic, err := lines.ReadString('\n'); err != nil || magic != baselineMagic {
		return nil, errors.New("this is no baseline")
	}
	r := &BaselineReader{lines: lines}
	return r, r.Next()
}

// BaselineReader stands at one line. Path is empty past the last.
type BaselineReader struct {
	lines *bufio.Reader
	Path  string
	Ctime int64
}

// Next goes on to the following line.
func (r *BaselineReader) Next() error {
	raw, err := r.lines.ReadSlice(0)
	if err == io.EOF && len(raw) == 0 {
		r.Path = ""
		return nil
	}
	if err != nil {
		return fmt.Errorf("the baseline is damaged: %w", err)
	}
	r.Path = string(raw[:len(raw)-1])
	var stamp [8]byte
	if _, err := io.ReadFull(r.lines, stamp[:]); err != nil || r.Path == "" {
		return errors.New("the baseline is damaged")
	}
	r.Ctime = int64(binary.BigEndian.Uint64(stamp[:]))
	return nil
}

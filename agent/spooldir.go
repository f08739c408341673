package main

import (
	"errors"
	"os"
	"syscall"
)

const openTemporary = syscall.O_DIRECTORY | 0o20000000 // O_TMPFILE

// SpoolDir makes unlinked files, so nothing is left behind and no command finds another's output.
type SpoolDir struct{ candidates []string }

func newSpoolDir(chosen string) *SpoolDir {
	if chosen != "" {
		return &SpoolDir{[]string{chosen}}
	}
	return &SpoolDir{[]string{os.TempDir(), "/var/tmp", "/dev/shm", "/run"}}
}

// Open tries each place in turn: with a read-only root only some, or none, can be written.
func (d *SpoolDir) Open() (*os.File, error) {
	for _, dir := range d.candidates {
		fd, err := syscall.Open(dir, openTemporary|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			return os.NewFile(uintptr(fd), "spool"), nil
		}
		if file, err := os.CreateTemp(dir, ".orchard-spool-*"); err == nil {
			_ = os.Remove(file.Name())
			return file, nil
		}
	}
	return nil, errors.New("no directory for the spool can be written")
}

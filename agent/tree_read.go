package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// treeRead streams a directory as a tar archive. What cannot be read, and what is no file, directory or link, is left
// out and counted in the trailer X-Orchard-Skipped: one odd entry must not cost the rest.
func (s *Server) treeRead(w http.ResponseWriter, r *http.Request) error {
	path, err := pathOf(r.URL.Query(), "path")
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() { // OpenRoot's own error has no number
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Trailer", "X-Orchard-Skipped")
	w.WriteHeader(http.StatusOK)
	walk := treeWalk{root: root, archive: tar.NewWriter(patientAnswer(w)), buffer: make([]byte, fileBuffer)}
	if err := walk.directory("."); err != nil {
		return err
	}
	if err := walk.archive.Close(); err != nil {
		return err
	}
	w.Header().Set("X-Orchard-Skipped", strconv.Itoa(walk.skipped))
	return nil
}

// maxDepth bounds the nesting of trees both ways. Each step of os.Root walks from the top, so that a nest of thousands,
// which a hostile command makes in a moment, would hold a walk for minutes.
const maxDepth = 256

func depth(name string) int {
	return strings.Count(name, "/")
}

type treeWalk struct {
	root    *os.Root
	archive *tar.Writer
	buffer  []byte
	skipped int
}

// directory returns only errors of the archive itself.
func (t *treeWalk) directory(name string) error {
	dir, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		t.skipped++
		return nil
	}
	defer dir.Close()
	for {
		names, _ := dir.Readdirnames(listBatch)
		if len(names) == 0 {
			return nil
		}
		for _, child := range names {
			if err := t.entry(filepath.Join(name, child)); err != nil {
				return err
			}
		}
	}
}

func (t *treeWalk) entry(name string) error {
	if depth(name) >= maxDepth {
		t.skipped++
		return nil
	}
	info, err := t.root.Lstat(name)
	if err != nil {
		t.skipped++
		return nil
	}
	switch kindOf(info.Mode()) {
	case "directory":
		if err := t.header(name, info, ""); err != nil {
			return err
		}
		return t.directory(name)
	case "symlink":
		target, err := t.root.Readlink(name)
		if err != nil {
			t.skipped++
			return nil
		}
		return t.header(name, info, target)
	case "file":
		return t.file(name)
	}
	t.skipped++
	return nil
}

func (t *treeWalk) header(name string, info fs.FileInfo, target string) error {
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		t.skipped++
		return nil
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
	}
	header.Uname, header.Gname = "", ""
	return t.archive.WriteHeader(header)
}

func (t *treeWalk) file(name string) error {
	file, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		t.skipped++
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		t.skipped++
		return nil
	}
	if err := t.header(name, info, ""); err != nil {
		return err
	}
	content := &steadyReader{file: file, left: info.Size()}
	_, err = io.CopyBuffer(struct{ io.Writer }{t.archive}, content, t.buffer)
	if content.padded {
		t.skipped++
	}
	return err
}

// steadyReader gives exactly the bytes that the header promised, whatever others do to the file meanwhile: zeros stand
// for what went away or cannot be read.
type steadyReader struct {
	file   io.Reader
	left   int64
	padded bool
}

func (s *steadyReader) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.left)]
	n := 0
	if !s.padded {
		n, _ = s.file.Read(p)
	}
	if n == 0 {
		s.padded = true
		clear(p)
		n = len(p)
	}
	s.left -= int64(n)
	return n, nil
}

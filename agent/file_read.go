package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const fileBuffer = 256 << 10

// fileRead streams a file, or the one range asked for. Files that claim size 0 (as in /proc) are read to their end.
func (s *Server) fileRead(w http.ResponseWriter, r *http.Request) error {
	path, err := pathOf(r.URL.Query(), "path")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fault(http.StatusUnprocessableEntity, "is_a_directory", "%q is a directory", path)
	}
	if !info.Mode().IsRegular() {
		return fault(http.StatusUnprocessableEntity, "not_a_file", "%q is a %s", path, kindOf(info.Mode()))
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("X-Orchard-Mode", strconv.FormatUint(uint64(info.Mode().Perm()), 8))
	if info.Size() == 0 {
		_, err := copyFile(patientAnswer(w), file, -1)
		return err
	}
	start, end, partial, err := rangeOf(r.Header.Get("Range"), info.Size())
	if err != nil {
		return err
	}
	if partial {
		header.Set("Content-Range", "bytes "+strconv.FormatInt(start, 10)+"-"+strconv.FormatInt(end-1, 10)+
			"/"+strconv.FormatInt(info.Size(), 10))
	}
	header.Set("Content-Length", strconv.FormatInt(end-start, 10))
	if partial {
		w.WriteHeader(http.StatusPartialContent)
	}
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	n, err := copyFile(patientAnswer(w), file, end-start)
	if err == nil && n < end-start {
		panic(http.ErrAbortHandler) // the file shrank: the client must see a cut answer
	}
	return err
}

// copyFile copies limit bytes, or all when limit is negative.
func copyFile(to io.Writer, from io.Reader, limit int64) (int64, error) {
	if limit >= 0 {
		from = io.LimitReader(from, limit)
	}
	return io.CopyBuffer(to, struct{ io.Reader }{from}, make([]byte, fileBuffer))
}

// rangeOf understands one range: "bytes=a-b", "bytes=a-" and "bytes=-n". end is exclusive.
func rangeOf(text string, size int64) (start, end int64, partial bool, err error) {
	if text == "" {
		return 0, size, false, nil
	}
	refused := fault(http.StatusRequestedRangeNotSatisfiable, "bad_range", "range %q of a file of %d bytes", text, size)
	first, last, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if !ok || !strings.HasPrefix(text, "bytes=") {
		return 0, 0, false, refused
	}
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n <= 0 {
			return 0, 0, false, refused
		}
		return max(0, size-n), size, true, nil
	}
	if start, err = strconv.ParseInt(first, 10, 64); err != nil || start < 0 || start >= size {
		return 0, 0, false, refused
	}
	end = size
	if last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < start {
			return 0, 0, false, refused
		}
		end = min(n+1, size)
	}
	return start, end, true, nil
}

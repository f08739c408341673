package main

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

const outputChunkMax = 4 << 20

// execOutput answers what there is from the cursor on, waiting for the first byte of it. The bytes may begin after the
// cursor, when those between head and tail are no longer kept; the headers tell.
func (s *Server) execOutput(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.Find(r.PathValue("id"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	sink := map[string]*Sink{"stdout": run.stdout, "stderr": run.stderr}[query.Get("stream")]
	if sink == nil {
		return badRequest("stream must be stdout or stderr")
	}
	cursor, err := number(query, "cursor", 0)
	if err != nil {
		return err
	}
	most, err := number(query, "max", 1<<20)
	if err != nil {
		return err
	}
	wait, err := waitOf(query)
	if err != nil {
		return err
	}
	size, ended := awaitOutput(r.Context(), sink, cursor, wait)
	start, body, err := readKept(sink.Spool, cursor, min(most, outputChunkMax), size)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Orchard-Cursor", strconv.FormatInt(start, 10))
	header.Set("X-Orchard-Size", strconv.FormatInt(size, 10))
	if ended && start+int64(len(body)) >= size {
		header.Set("X-Orchard-End", "1")
	}
	_, err = patientAnswer(w).Write(body)
	return err
}

func awaitOutput(ctx context.Context, sink *Sink, cursor int64, wait time.Duration) (int64, bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		size, ended, changed := sink.State()
		if size > cursor || ended || wait == 0 {
			return size, ended
		}
		select {
		case <-changed:
		case <-timer.C:
			return size, ended
		case <-ctx.Done():
			return size, ended
		}
	}
}

func readKept(spool *Spool, cursor, most, size int64) (start int64, body []byte, err error) {
	start, first := cursor, true
	body = make([]byte, 0, max(min(most, size-cursor), 0))
	for int64(len(body)) < most && len(body) < cap(body) {
		at, n, err := spool.ReadAt(body[len(body):cap(body)], cursor)
		if err != nil {
			return 0, nil, err
		}
		if first {
			start = at
		}
		if n == 0 || (!first && at != cursor) {
			break
		}
		first = false
		body, cursor = body[:len(body)+n], at+int64(n)
	}
	return start, body, nil
}

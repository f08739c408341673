package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"syscall"
)

// Fault is an error with a stable code. Clients map the code, never the message.
type Fault struct {
	Status  int            `json:"-"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Detail  map[string]any `json:"detail,omitempty"`
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

func fault(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// pathFaults maps errno to (status, code); the first match wins.
var pathFaults = []struct {
	errno  error
	status int
	code   string
}{
	{fs.ErrNotExist, http.StatusNotFound, "path_not_found"},
	{syscall.ENOTDIR, http.StatusUnprocessableEntity, "not_a_directory"},
	{syscall.EISDIR, http.StatusUnprocessableEntity, "is_a_directory"},
	{syscall.ENOTEMPTY, http.StatusConflict, "directory_not_empty"},
	{fs.ErrExist, http.StatusConflict, "path_exists"},
	{syscall.EROFS, http.StatusForbidden, "read_only"},
	{fs.ErrPermission, http.StatusForbidden, "permission_denied"},
	{syscall.ENOSPC, http.StatusInsufficientStorage, "no_space"},
	{syscall.EDQUOT, http.StatusInsufficientStorage, "no_space"},
	{syscall.EXDEV, http.StatusConflict, "cross_device"},
	{syscall.ENAMETOOLONG, http.StatusUnprocessableEntity, "name_too_long"},
	{syscall.ELOOP, http.StatusUnprocessableEntity, "too_many_links"},
}

// asFault gives any error its code; file system errors name the path.
func asFault(err error) *Fault {
	var known *Fault
	if errors.As(err, &known) {
		return known
	}
	for _, p := range pathFaults {
		if errors.Is(err, p.errno) {
			return fault(p.status, p.code, "%v", err)
		}
	}
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return fault(http.StatusRequestEntityTooLarge, "too_large", "%v", err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault(http.StatusBadRequest, "body_cut", "the request body ended early: %v", err)
	}
	return fault(http.StatusInternalServerError, "internal", "%v", err)
}

func writeFault(w http.ResponseWriter, err error) {
	f := asFault(err)
	body, _ := json.Marshal(f)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

func (s *Server) fileMkdir(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	path, err := pathOf(query, "path")
	if err != nil {
		return err
	}
	mode := uint32(0o755)
	if query.Get("mode") != "" {
		if mode, err = modeFor(query, ""); err != nil {
			return err
		}
	}
	if query.Get("parents") == "1" {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return answer(w, map[string]bool{"created": false})
		} else if err == nil {
			return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
		if err := makeParents(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if err := syscall.Chmod(path, mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return answer(w, map[string]bool{"created": true})
}

// fileMove renames, and copies where a rename cannot reach (another device, or a lower layer of an overlay).
func (s *Server) fileMove(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	from, err := pathOf(query, "from")
	if err != nil {
		return err
	}
	to, err := pathOf(query, "to")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil && query.Get("overwrite") != "1" {
		return fault(http.StatusConflict, "path_exists", "%q exists", to)
	}
	err = os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		err = moveByCopy(from, to)
	}
	if err != nil {
		return err
	}
	return answer(w, map[string]bool{"moved": true})
}

// fileRemove never follows links: a link is removed, not what it points to.
func (s *Server) fileRemove(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	path, err := pathOf(query, "path")
	if err != nil {
		return err
	}
	if filepath.Clean(path) == "/" {
		return badRequest("the root directory cannot be removed")
	}
	_, err = os.Lstat(path)
	if err == nil {
		if query.Get("recursive") == "1" {
			err = os.RemoveAll(path)
		} else {
			err = os.Remove(path)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && query.Get("missing_ok") == "1" {
		return answer(w, map[string]bool{"removed": false})
	}
	if err != nil {
		return err
	}
	return answer(w, map[string]bool{"removed": true})
}

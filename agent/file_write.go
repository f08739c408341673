package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// fileWrite streams the body into a temporary neighbour and renames it: readers see the old file or the new one, and a
// cut body leaves the old one. A link is followed, as by open(2); an existing file keeps its mode unless one is given.
func (s *Server) fileWrite(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	path, err := pathOf(query, "path")
	if err != nil {
		return err
	}
	if path, err = followLinks(path); err != nil {
		return err
	}
	mode, err := modeFor(query, path)
	if err != nil {
		return err
	}
	if err := mayReplace(path); err != nil {
		return err
	}
	if query.Get("parents") == "1" {
		if err := makeParents(filepath.Dir(path)); err != nil {
			return err
		}
	}
	temporary := filepath.Join(filepath.Dir(path), ".orchard-"+rand.Text()+".tmp")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	size, err := copyFile(struct{ *os.File }{file}, patientBody(w, r), -1)
	if err == nil && r.ContentLength >= 0 && size != r.ContentLength {
		err = fault(http.StatusBadRequest, "body_cut", "%d of %d bytes arrived", size, r.ContentLength)
	}
	if err == nil {
		err = settle(file, path, mode, query.Get("fsync") == "1")
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return answer(w, map[string]int64{"size": size})
}

func settle(file *os.File, path string, mode uint32, sync bool) error {
	if err := keepOwner(file, path); err != nil {
		return err
	}
	if err := syscall.Fchmod(int(file.Fd()), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	if sync {
		return file.Sync()
	}
	return nil
}

// keepOwner gives the file to the owner of the one it replaces, where the rights at hand suffice.
func keepOwner(file *os.File, replaced string) error {
	var old, made syscall.Stat_t
	if syscall.Stat(replaced, &old) != nil || syscall.Fstat(int(file.Fd()), &made) != nil {
		return nil
	}
	if old.Uid == made.Uid && old.Gid == made.Gid {
		return nil
	}
	if err := file.Chown(int(old.Uid), int(old.Gid)); err != nil && !errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// mayReplace holds a rename to the rights that writing the old file in place would need.
func mayReplace(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		return file.Close()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ETXTBSY) {
		return nil
	}
	return err
}

// makeParents creates what is missing.
func makeParents(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeParents(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		return nil
	}
	info, statErr := os.Stat(dir)
	if statErr == nil && info.IsDir() {
		return nil
	}
	if statErr == nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

func modeFor(query url.Values, path string) (uint32, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return 0, fault(http.StatusUnprocessableEntity, "is_a_directory", "%q is a directory", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		return 0, fault(http.StatusUnprocessableEntity, "not_a_file", "%q is a %s", path, kindOf(info.Mode()))
	}
	text := query.Get("mode")
	if text == "" {
		if err == nil {
			return uint32(info.Mode().Perm()), nil
		}
		return 0o644, nil
	}
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, badRequest("mode must be octal, at most 7777: %q", text)
	}
	return uint32(mode), nil
}

const linksMax = 40

// followLinks resolves the last name while it is a link, dangling ones too.
func followLinks(path string) (string, error) {
	for range linksMax {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link, or missing: the open that follows has the better error
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

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
	owner, err := s.ownerOf(query, path)
	if err != nil {
		return err
	}
	if query.Get("parents") == "1" {
		if err := s.makeParents(filepath.Dir(path)); err != nil {
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
		err = settle(file, owner, mode, query.Get("fsync") == "1")
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

func settle(file *os.File, owner *Account, mode uint32, sync bool) error {
	if err := owner.own(file.Name()); err != nil {
		return err
	}
	if err := syscall.Fchmod(int(file.Fd()), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: file.Name(), Err: err}
	}
	if sync {
		return file.Sync()
	}
	return nil
}

// ownerOf is the user asked for, else the owner of the file that is replaced, else the sandbox's user.
func (s *Server) ownerOf(query url.Values, replaced string) (*Account, error) {
	if user := query.Get("user"); user != "" {
		account, err := lookUpAccount(user)
		if err != nil {
			return nil, err
		}
		_, err = account.credential()
		return account, err
	}
	var old syscall.Stat_t
	if syscall.Stat(replaced, &old) == nil {
		return &Account{uid: old.Uid, gid: old.Gid}, nil
	}
	return s.runs.defaults.Account, nil
}

// own gives a path to the account, where the agent may and it is not already so.
func (a *Account) own(path string) error {
	if a == nil || os.Geteuid() != 0 {
		return nil
	}
	if int(a.uid) == os.Geteuid() && int(a.gid) == os.Getegid() {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// makeParents creates what is missing, owned by the sandbox's user.
func (s *Server) makeParents(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.makeParents(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		return s.runs.defaults.Account.own(dir)
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

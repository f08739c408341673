package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// moveByCopy copies beside the target, renames the copy into place, and only then removes the source.
func moveByCopy(from, to string) error {
	temporary := filepath.Join(filepath.Dir(to), ".orchard-"+rand.Text()+".tmp")
	err := copyTree(from, temporary)
	if err == nil {
		err = os.Rename(temporary, to)
	}
	if err != nil {
		_ = os.RemoveAll(temporary)
		return err
	}
	return os.RemoveAll(from)
}

func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch kindOf(info.Mode()) {
	case "file":
		err = copyContent(from, to)
	case "symlink":
		target, readErr := os.Readlink(from)
		if readErr != nil {
			return readErr
		}
		err = os.Symlink(target, to)
	case "directory":
		err = copyDirectory(from, to)
	default:
		return fault(http.StatusUnprocessableEntity, "not_a_file", "%q is a %s and cannot be copied", from, kindOf(info.Mode()))
	}
	if err != nil {
		return err
	}
	return copyMeta(info, to)
}

func copyContent(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = target.ReadFrom(source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	return err
}

func copyDirectory(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyTree(from+"/"+e.Name(), to+"/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func copyMeta(info fs.FileInfo, to string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(to, int(stat.Uid), int(stat.Gid)); err != nil && !errors.Is(err, syscall.EPERM) {
			return err
		}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	if err := syscall.Chmod(to, stat.Mode&0o7777); err != nil {
		return &fs.PathError{Op: "chmod", Path: to, Err: err}
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

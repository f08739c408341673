package main

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
)

// landWalk visits everything of a territory: a directory before what is in it, names in the order of their bytes. Two
// walks can so be compared line by line, however large they are. No link is followed.
type landWalk struct {
	land  *Territory
	visit func(dir int, name, path string, info *syscall.Stat_t) error
	lost  func(path string) // of which nothing can be told: it cannot be listed
}

func (w *landWalk) run() error {
	fd, err := syscall.Open("/", openDirectory, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return err
	}
	return w.directory(fd, "", info.Dev, 0)
}

func (w *landWalk) directory(fd int, path string, device uint64, depth int) error {
	entries, err := readEntries(fd)
	if err != nil {
		w.lost(path)
		return nil
	}
	slices.SortFunc(entries, func(a, b dirent) int { return cmp.Compare(a.name, b.name) })
	for _, entry := range entries {
		if child := path + "/" + entry.name; w.land.holds(child) {
			if err := w.entry(fd, entry.name, child, device, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *landWalk) entry(dir int, name, path string, device uint64, depth int) error {
	info, err := statat(dir, name)
	if err != nil {
		if !gone(err) {
			w.lost(path)
		}
		return nil
	}
	isDirectory := info.Mode&syscall.S_IFMT == syscall.S_IFDIR
	if isDirectory && info.Dev != device && !w.land.own[path] {
		w.lost(path)
		return nil
	}
	if err := w.visit(dir, name, path, &info); err != nil || !isDirectory {
		return err
	}
	if depth >= maxDepth {
		w.lost(path)
		return nil
	}
	fd, err := openat(dir, name, openDirectory|syscall.O_NOATIME, 0)
	if err != nil {
		if !gone(err) {
			w.lost(path)
		}
		return nil
	}
	defer syscall.Close(fd)
	return w.directory(fd, path, info.Dev, depth+1)
}

// walkOrder compares two paths as the walk comes to them: the slash before any byte of a name.
func walkOrder(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

// below tells whether path is top, or lies below it. Nothing lies below nothing.
func below(path, top string) bool {
	return top != "" && strings.HasPrefix(path, top) && (len(path) == len(top) || path[len(top)] == '/')
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func cloned(t *testing.T, from string) (string, ClonedTrees) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	var out, errs bytes.Buffer
	if code := cloneMain([]string{from, to}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var told ClonedTrees
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	return to, told
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func lstat(t *testing.T, path string) syscall.Stat_t {
	t.Helper()
	var info syscall.Stat_t
	must(t, syscall.Lstat(path, &info))
	return info
}

func TestCloneKeepsWhatBelongsToAFile(t *testing.T) {
	from := t.TempDir()
	must(t,
		os.MkdirAll(from+"/a/b", 0o755),
		os.WriteFile(from+"/a/b/file", []byte("content"), 0o600),
		os.Link(from+"/a/b/file", from+"/other"),
		os.Chmod(from+"/a/b/file", 0o4751),
		os.Symlink("/etc/shadow", from+"/link"),
		os.Symlink("loop", from+"/loop"),
		syscall.Mkfifo(from+"/pipe", 0o640),
		os.WriteFile(from+"/closed", nil, 0o000),
		os.WriteFile(from+"/new\nline\xff", nil, 0o644),
		syscall.Setxattr(from+"/a", "user.overlay.opaque", []byte("y"), 0),
		syscall.UtimesNano(from+"/a", []syscall.Timespec{{Sec: 1, Nsec: 2}, {Sec: 3, Nsec: 4}}),
	)
	to, told := cloned(t, from)
	for _, name := range []string{"a", "a/b", "a/b/file", "other", "link", "loop", "pipe", "closed", "new\nline\xff"} {
		was, now := lstat(t, from+"/"+name), lstat(t, to+"/"+name)
		if was.Mode != now.Mode || was.Size != now.Size && was.Mode&syscall.S_IFDIR == 0 || was.Mtim != now.Mtim || was.Nlink != now.Nlink {
			t.Errorf("%q: was %+v, is %+v", name, was, now)
		}
	}
	if lstat(t, to+"/other").Ino != lstat(t, to+"/a/b/file").Ino {
		t.Error("two names of one file have become two files")
	}
	value := make([]byte, 8)
	if n, err := syscall.Getxattr(to+"/a", "user.overlay.opaque", value); err != nil || string(value[:n]) != "y" {
		t.Errorf("the overlay's mark is lost: %q, %v", value[:max(n, 0)], err)
	}
	if told.Files != 9 || told.Changed != 0 || told.Skipped != 0 {
		t.Errorf("told %+v", told)
	}
	if _, err := os.Lstat(to + ".links"); err == nil {
		t.Error("the directory of links is left")
	}
}

func TestCloneKeepsHoles(t *testing.T) {
	from := t.TempDir()
	file, err := os.Create(from + "/sparse")
	must(t, err)
	for _, at := range []int64{0, 5 << 20, 1 << 30} {
		_, err := file.WriteAt([]byte("data"), at)
		must(t, err)
	}
	must(t, file.Truncate(2<<30), file.Close())
	to, _ := cloned(t, from)
	info := lstat(t, to+"/sparse")
	if info.Size != 2<<30 || info.Blocks*512 > 1<<20 {
		t.Errorf("size %d, on disk %d", info.Size, info.Blocks*512)
	}
	copied, err := os.Open(to + "/sparse")
	must(t, err)
	defer copied.Close()
	for _, at := range []int64{0, 5 << 20, 1 << 30} {
		piece := make([]byte, 4)
		if _, err := copied.ReadAt(piece, at); err != nil || string(piece) != "data" {
			t.Errorf("at %d: %q, %v", at, piece, err)
		}
	}
}

func TestCloneGoesDeeperThanAPathCanSay(t *testing.T) {
	const depth, name = 800, "directory" // longer than a path may be
	from := t.TempDir()
	here, err := os.Getwd()
	must(t, err, os.Chdir(from))
	for range depth {
		must(t, os.WriteFile("f", []byte("x"), 0o600), os.Mkdir(name, 0o700), os.Chdir(name))
	}
	must(t, os.Chdir(here))
	_, told := cloned(t, from)
	if told.Files != 2*depth {
		t.Errorf("%d levels, but %d entries", depth, told.Files)
	}
}

func TestCloneFollowsNoLink(t *testing.T) {
	secret, from := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(secret+"/file", []byte("secret"), 0o644), os.Symlink(secret, from+"/link"))
	var out, errs bytes.Buffer
	if code := cloneMain([]string{from + "/link", from + "/copy"}, &out, &errs); code != cloneFailed {
		t.Errorf("a link for a tree: exit %d", code)
	}
	c := &cloner{}
	source, err := syscall.Open(from, openDirectory, 0)
	must(t, err)
	defer syscall.Close(source)
	if err := c.file(source, source, "link"); err != nil || c.changed.Load() != 1 {
		t.Errorf("a link for a file: %v", err)
	}
	if d, err := c.open(source, source, "link"); d != nil || err != nil || c.changed.Load() != 2 {
		t.Errorf("a link for a directory: %v", err)
	}
}

func TestCloneIsToldWhatItNeeds(t *testing.T) {
	for _, args := range [][]string{{}, {"from"}, {"a", "b", "c"}} {
		var out, errs bytes.Buffer
		if code := cloneMain(args, &out, &errs); code != cloneMisused || !strings.Contains(errs.String(), "usage:") {
			t.Errorf("%v: exit %d, %s", args, code, errs.String())
		}
	}
	from := t.TempDir()
	var out, errs bytes.Buffer
	if code := cloneMain([]string{from, from}, &out, &errs); code != cloneFailed || !strings.Contains(errs.String(), "exists") {
		t.Errorf("a copy over something: exit %d, %s", code, errs.String())
	}
}

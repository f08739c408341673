package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// Copying the writable layers of a sandbox, as they lie on the host, to make a snapshot or a copy of the sandbox. What is
// copied is hostile: everything is reached from an open directory, and no link is ever followed.

const (
	cloneFailed  = 1
	cloneMisused = 2
	cloneNoSpace = 3
	cloneUsage   = `usage: orchard-agent clone FROM TO [FROM TO]...

Copies each directory FROM, whole, to TO, which must not exist. Prints one JSON object. Exits with 3 when the disk is full.
`
	cloneWorkersMax = 8
	cloneDepthMax   = 48 // directories kept open below one another; deeper ones are taken one at a time
	cloneBatch      = 64 // files handed to a worker at once
)

// ClonedTrees is what was copied, in the words of the JSON that is printed.
type ClonedTrees struct {
	Files   int64 `json:"files"`   // entries of every kind
	Bytes   int64 `json:"bytes"`   // on disk
	Skipped int64 `json:"skipped"` // devices, which cannot be made
	Changed int64 `json:"changed"` // entries that went or became something else while they were looked at
}

// cloner copies one tree or several.
type cloner struct {
	files, bytes, skipped, changed atomic.Int64
	noReflink                      atomic.Bool
	jobs                           chan func()
	links                          cloneLinks
	failure                        atomic.Pointer[error]
}

// cloneMain returns the exit code.
func cloneMain(args []string, out, errs io.Writer) int {
	if len(args) == 0 || len(args)%2 != 0 {
		fmt.Fprint(errs, cloneUsage)
		return cloneMisused
	}
	syscall.Umask(0)
	raiseFiles()
	made, err := cloneTrees(args)
	if err == nil {
		err = json.NewEncoder(out).Encode(made)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		fmt.Fprintln(errs, err)
		return cloneNoSpace
	default:
		fmt.Fprintln(errs, err)
		return cloneFailed
	}
}

// raiseFiles takes as many descriptors as are allowed.
func raiseFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
}

func cloneTrees(pairs []string) (ClonedTrees, error) {
	c := &cloner{jobs: make(chan func(), cloneWorkersMax)}
	var workers sync.WaitGroup
	for range min(cloneWorkersMax, max(2, runtime.NumCPU())) {
		workers.Go(func() {
			for job := range c.jobs {
				job()
			}
		})
	}
	for ; len(pairs) > 0 && c.failed() == nil; pairs = pairs[2:] {
		if err := c.tree(pairs[0], pairs[1]); err != nil {
			c.fail(err)
		}
	}
	close(c.jobs)
	workers.Wait()
	return ClonedTrees{c.files.Load(), c.bytes.Load(), c.skipped.Load(), c.changed.Load()}, c.failed()
}

// tree copies one directory. Names of files with several links lie in a directory beside the copy meanwhile.
func (c *cloner) tree(from, to string) error {
	source, err := syscall.Open(from, openDirectory, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: from, Err: err}
	}
	var info syscall.Stat_t
	if err := syscall.Fstat(source, &info); err != nil {
		return &os.PathError{Op: "stat", Path: from, Err: err}
	}
	if err := syscall.Mkdir(to, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: to, Err: err}
	}
	target, err := syscall.Open(to, openDirectory, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: to, Err: err}
	}
	c.links.reset(filepath.Clean(to) + ".links")
	defer c.links.remove()
	done := make(chan struct{})
	root := &cloneDir{from: source, to: target, info: info, ended: func() { close(done) }}
	root.pending.Store(1)
	c.walk(root, 0)
	<-done
	return nil
}

// check notes the first failure; the others stop when they see it.
func (c *cloner) check(err error) {
	if err != nil {
		c.fail(err)
	}
}

func (c *cloner) fail(err error) { c.failure.CompareAndSwap(nil, &err) }

func (c *cloner) failed() error {
	if err := c.failure.Load(); err != nil {
		return *err
	}
	return nil
}

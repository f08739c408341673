package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Cgroups makes one cgroup (v2) a run below a directory that the provider has delegated to the agent.
type Cgroups struct {
	root string
	next atomic.Int64
}

// newCgroups returns nil, which makes no cgroups, when the directory does not serve.
func newCgroups(root string) *Cgroups {
	if root == "" || syscall.Access(filepath.Join(root, "cgroup.procs"), 2) != nil {
		return nil
	}
	return &Cgroups{root: root}
}

// Cgroup holds all processes of a run, whatever session or parent they take. nil is valid and does nothing.
type Cgroup struct {
	path string
	dir  *os.File
}

func (c *Cgroups) Create() *Cgroup {
	if c == nil {
		return nil
	}
	path := filepath.Join(c.root, fmt.Sprintf("run-%d-%d", os.Getpid(), c.next.Add(1)))
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil
	}
	return &Cgroup{path, dir}
}

// Enter makes the next spawn begin inside.
func (g *Cgroup) Enter(attributes *syscall.SysProcAttr) {
	if g != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.dir.Fd())
	}
}

func (g *Cgroup) Kill() {
	if g != nil {
		_ = os.WriteFile(g.path+"/cgroup.kill", []byte("1"), 0)
	}
}

// Remove waits, in the background, until the last survivor of the run is gone.
func (g *Cgroup) Remove() {
	if g == nil {
		return
	}
	_ = g.dir.Close()
	go func() {
		for pause := time.Millisecond; os.Remove(g.path) != nil; pause = min(2*pause, 5*time.Second) {
			if _, err := os.Stat(g.path); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}()
}

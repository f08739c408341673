package main

import (
	"os"
	"syscall"
	"time"
)

// runMarkName marks each command's environment, so that children which left its session are still found.
const runMarkName = "ORCHARD_RUN"

const killPatience = 3 * time.Second

// Tree finds the processes of one run: by ancestry, process group, session, and the mark in the environment. owns
// decides about an adopted orphan that shows none of these (it cleared its environment and left its session).
type Tree struct {
	leader int
	id     string
	owns   func(p Proc) bool
}

func (t Tree) members(all []Proc, known map[int]bool) []Proc {
	self := os.Getpid()
	in := map[int]bool{}
	var found []Proc
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if in[p.pid] || p.pid == self || p.pid == 1 {
				continue
			}
			if in[p.parent] || known[p.session] || known[p.group] || t.claims(p, self) {
				in[p.pid], known[p.session], known[p.group] = true, true, true
				found = append(found, p)
				grew = true
			}
		}
	}
	return found
}

func (t Tree) claims(p Proc, self int) bool {
	if p.zombie {
		return false
	}
	mark := runMark(p.pid)
	return mark == t.id || (mark == "" && p.parent == self && t.owns != nil && t.owns(p))
}

// Kill ends every member and returns when none is left, or when patience is.
func (t Tree) Kill(known map[int]bool) bool {
	_ = syscall.Kill(-t.leader, syscall.SIGKILL)
	return killUntilNone(func(all []Proc) []Proc { return t.members(all, known) })
}

// killDescendants ends every process below the agent.
func killDescendants() bool {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL) // init's own kill(-1) spares only itself
	}
	return killUntilNone(descendants)
}

func descendants(all []Proc) []Proc {
	below := map[int]bool{os.Getpid(): true}
	var found []Proc
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if !below[p.pid] && below[p.parent] {
				below[p.pid] = true
				found = append(found, p)
				grew = true
			}
		}
	}
	return found
}

// killUntilNone repeats, because members may fork while they are being counted.
func killUntilNone(find func([]Proc) []Proc) bool {
	pause := time.Millisecond
	for deadline := time.Now().Add(killPatience); time.Now().Before(deadline); {
		alive := 0
		for _, p := range find(processes()) {
			if !p.zombie {
				alive++
				p.kill()
			}
		}
		if alive == 0 {
			return true
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
	return false
}

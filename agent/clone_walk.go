package main

import (
	"errors"
	"sync/atomic"
	"syscall"
)

// cloneDir is a directory being copied. Its own attributes come last, as every entry made in it changes its times.
type cloneDir struct {
	from, to int // open on both sides until everything below is done
	info     syscall.Stat_t
	parent   *cloneDir
	pending  atomic.Int32 // the walk itself, batches of files, directories below
	ended    func()
}

// walk copies a directory's entries: files by the workers, everything else here.
func (c *cloner) walk(d *cloneDir, depth int) {
	defer c.release(d)
	entries, err := readEntries(d.from)
	if err != nil {
		c.fail(err)
		return
	}
	var below []string
	var batch []string
	for _, entry := range entries {
		if c.failed() != nil {
			return
		}
		switch kind := c.kind(d.from, entry); kind {
		case syscall.DT_REG:
			if batch = append(batch, entry.name); len(batch) == cloneBatch {
				c.hand(d, batch)
				batch = nil
			}
		case syscall.DT_DIR:
			below = append(below, entry.name)
		default:
			c.check(c.other(d.from, d.to, entry.name))
		}
	}
	if len(batch) > 0 {
		c.hand(d, batch)
	}
	for _, name := range below {
		c.enter(d, name, depth+1)
	}
}

func (c *cloner) enter(d *cloneDir, name string, depth int) {
	child, err := c.open(d.from, d.to, name)
	if err != nil || child == nil {
		c.check(err)
		return
	}
	if depth > cloneDepthMax {
		c.check(c.descend(child))
		closeFds(child.from, child.to)
		return
	}
	d.pending.Add(1)
	child.parent = d
	child.pending.Store(1)
	c.walk(child, depth)
}

// hand gives files to a worker.
func (c *cloner) hand(d *cloneDir, names []string) {
	d.pending.Add(1)
	c.jobs <- func() {
		defer c.release(d)
		for _, name := range names {
			if c.failed() != nil {
				return
			}
			c.check(c.file(d.from, d.to, name))
		}
	}
}

// release lets go of a directory; the last one that does finishes it, and lets go of its parent.
func (c *cloner) release(d *cloneDir) {
	for d != nil && d.pending.Add(-1) == 0 {
		c.check(finishDir(d))
		closeFds(d.from, d.to)
		if d.ended != nil {
			d.ended()
		}
		d = d.parent
	}
}

// open makes the copy of a directory and opens both; nil when the directory has gone.
func (c *cloner) open(from, to int, name string) (*cloneDir, error) {
	source, err := openat(from, name, openDirectory, 0)
	if gone(err) {
		c.changed.Add(1)
		return nil, nil
	}
	if err != nil {
		return nil, inFault("open", name, err)
	}
	d := &cloneDir{from: source, to: -1}
	if err = syscall.Fstat(source, &d.info); err == nil {
		err = syscall.Mkdirat(to, name, 0o700)
	}
	if err == nil {
		d.to, err = openat(to, name, openDirectory, 0)
	}
	if err != nil {
		closeFds(d.from, d.to)
		return nil, inFault("copy the directory", name, err)
	}
	c.files.Add(1)
	c.bytes.Add(d.info.Blocks * 512)
	return d, nil
}

// finishDir gives the copy of a directory its attributes.
func finishDir(d *cloneDir) error {
	if err := copyXattrs(d.from, d.to); err != nil {
		return inFault("copy attributes of", "a directory", err)
	}
	return inFault("set attributes of", "a directory", copyOwnerModeTimes(d.to, &d.info))
}

// descend copies a directory and closes it. It goes down without holding what lies above: a nest may be deeper than
// descriptors last. The way back up is `..`, and counts only when it leads to where it came from.
func (c *cloner) descend(d *cloneDir) error {
	below, err := c.inline(d)
	for err == nil && len(below) > 0 && c.failed() == nil {
		name := below[len(below)-1]
		below = below[:len(below)-1]
		err = c.descendInto(d, name)
	}
	if err == nil {
		err = finishDir(d)
	}
	return err
}

func (c *cloner) descendInto(d *cloneDir, name string) error {
	child, err := c.open(d.from, d.to, name)
	if err != nil || child == nil {
		return err
	}
	var above syscall.Stat_t
	if err := syscall.Fstat(d.to, &above); err != nil {
		return err
	}
	closeFds(d.from, d.to)
	d.from, d.to = -1, -1
	err = c.descend(child)
	if err == nil {
		d.from, err = reopen(child.from, &d.info)
	}
	if err == nil {
		d.to, err = reopen(child.to, &above)
	}
	closeFds(child.from, child.to)
	return err
}

var errMoved = errors.New("a directory was moved while it was copied")

func reopen(child int, wanted *syscall.Stat_t) (int, error) {
	fd, err := openat(child, "..", openDirectory, 0)
	if err != nil {
		return -1, inFault("go back up from", "a directory", err)
	}
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil || info.Ino != wanted.Ino || info.Dev != wanted.Dev {
		syscall.Close(fd)
		return -1, errMoved
	}
	return fd, nil
}

// inline copies everything in a directory but directories, whose names it returns.
func (c *cloner) inline(d *cloneDir) (below []string, err error) {
	entries, err := readEntries(d.from)
	for _, entry := range entries {
		if err != nil || c.failed() != nil {
			break
		}
		switch c.kind(d.from, entry) {
		case syscall.DT_REG:
			err = c.file(d.from, d.to, entry.name)
		case syscall.DT_DIR:
			below = append(below, entry.name)
		default:
			err = c.other(d.from, d.to, entry.name)
		}
	}
	return below, err
}

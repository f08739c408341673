package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
)

// treeWrite extracts a tar archive below a directory that it makes when missing. os.Root keeps every step beneath it,
// whatever links are there already. Links of the archive are made last and checked, so none can lead another entry out.
func (s *Server) treeWrite(w http.ResponseWriter, r *http.Request) error {
	dir, err := pathOf(r.URL.Query(), "path")
	if err != nil {
		return err
	}
	if err := makeParents(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	body := patientBody(w, r)
	x := extraction{root: root, buffer: make([]byte, fileBuffer), skip: r.URL.Query().Get("links") == "skip"}
	if err := x.all(tar.NewReader(body)); err != nil {
		return err
	}
	if _, err := copyFile(io.Discard, body, -1); err != nil { // the padding after the archive
		return err
	}
	return answer(w, map[string]int64{"entries": x.entries, "bytes": x.bytes, "skipped": x.skipped})
}

type extraction struct {
	root    *os.Root
	buffer  []byte
	links   []*tar.Header
	dirs    []*tar.Header
	entries int64
	bytes   int64
	skip    bool // leave out links that lead out, instead of refusing the archive
	skipped int64
}

func (x *extraction) all(archive *tar.Reader) error {
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return invalidArchive(err)
		}
		if err := x.entry(header, archive); err != nil {
			return escapeFault(header, err)
		}
		x.entries++
	}
	for _, link := range x.links {
		if err := x.link(link); err != nil {
			return escapeFault(link, err)
		}
	}
	for _, link := range x.links {
		if _, err := x.root.Stat(path.Clean(link.Name)); isEscape(err) {
			_ = x.root.Remove(path.Clean(link.Name))
			if err := x.refuse(link); err != nil {
				return err
			}
		}
	}
	for i := len(x.dirs) - 1; i >= 0; i-- { // deepest first: a mode may forbid writing
		_ = x.root.Chmod(path.Clean(x.dirs[i].Name), fs.FileMode(x.dirs[i].Mode&0o777))
	}
	return nil
}

func invalidArchive(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "not a whole tar archive: %v", err)
	}
	if errors.Is(err, tar.ErrInsecurePath) {
		return fault(http.StatusUnprocessableEntity, "archive_escape", "%v", err)
	}
	return err
}

func escapes(header *tar.Header) *Fault {
	return fault(http.StatusUnprocessableEntity, "archive_escape",
		"the entry %q (link to %q) leaves the directory", header.Name, header.Linkname)
}

func isEscape(err error) bool {
	return err != nil && strings.Contains(err.Error(), "path escapes from parent")
}

func escapeFault(header *tar.Header, err error) error {
	if isEscape(err) {
		return escapes(header)
	}
	return invalidArchive(err)
}

// inside tells whether a name stays beneath the directory; a link's target is taken from the link's own place.
func inside(name string) bool {
	clean := path.Clean(name)
	return name != "" && !path.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../")
}

func (x *extraction) entry(header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if !inside(header.Name) || strings.Contains("/"+header.Name+"/", "/../") {
		return escapes(header)
	}
	if depth(name) >= maxDepth {
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "an entry lies deeper than %d directories", maxDepth)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		x.dirs = append(x.dirs, header)
		return x.directory(name)
	case tar.TypeReg:
		return x.file(name, header, content)
	case tar.TypeSymlink:
		if path.IsAbs(header.Linkname) || !inside(path.Join(path.Dir(name), header.Linkname)) {
			return x.refuse(header)
		}
		x.links = append(x.links, header)
		return nil
	case tar.TypeLink:
		if !inside(header.Linkname) {
			return escapes(header)
		}
		return x.hardlink(name, path.Clean(header.Linkname))
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fault(http.StatusUnprocessableEntity, "archive_invalid", "%q is neither file, directory nor link", header.Name)
}

func (x *extraction) refuse(link *tar.Header) error {
	if x.skip {
		x.skipped++
		return nil
	}
	return escapes(link)
}

func (x *extraction) directory(name string) error {
	if name == "." {
		return nil
	}
	if info, err := x.root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := x.parents(name); err != nil {
		return err
	}
	if err := x.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (x *extraction) parents(name string) error {
	if dir := path.Dir(name); dir != "." {
		return x.directory(dir)
	}
	return nil
}

// clear removes a file or link that is in the way, so that nothing is written through it.
func (x *extraction) clear(name string) error {
	if err := x.parents(name); err != nil {
		return err
	}
	if info, err := x.root.Lstat(name); err == nil && !info.IsDir() {
		return x.root.Remove(name)
	}
	return nil
}

func (x *extraction) file(name string, header *tar.Header, content io.Reader) error {
	if err := x.clear(name); err != nil {
		return err
	}
	file, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{content}, x.buffer)
	x.bytes += n
	if err == nil {
		err = file.Chmod(fs.FileMode(header.Mode & 0o777))
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = x.root.Chtimes(name, header.ModTime, header.ModTime)
	}
	return err
}

func (x *extraction) link(header *tar.Header) error {
	name := path.Clean(header.Name)
	if err := x.clear(name); err != nil {
		return err
	}
	return x.root.Symlink(header.Linkname, name)
}

func (x *extraction) hardlink(name, target string) error {
	if info, err := x.root.Lstat(target); err == nil && !info.Mode().IsRegular() {
		return fault(http.StatusUnprocessableEntity, "archive_invalid", "%q is a hard link to what is no file", name)
	}
	if err := x.clear(name); err != nil {
		return err
	}
	return x.root.Link(target, name)
}

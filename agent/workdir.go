package main

import (
	"os"
	"path/filepath"
)

// makeWorkdir makes the working directory with those above it when it is missing, for the user that commands run as. Where
// that cannot be done a command that needs it says so.
func makeWorkdir(path string, owner *Account) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	if os.Mkdir(path, 0o755) == nil && owner != nil {
		_ = os.Lchown(path, int(owner.uid), int(owner.gid))
	}
}

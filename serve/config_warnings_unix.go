//go:build unix

package serve

import (
	"io/fs"
	"os"
	"syscall"
)

// isOpenToOthers reports whether others than the owner of a file, and root, can read or change it.
// A file of another user may be readable by its group: that is how this process reads it, as one of
// a Kubernetes secret.
func isOpenToOthers(info fs.FileInfo) bool {
	open := info.Mode().Perm() & 0o077
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		open &^= 0o040
	}
	return open != 0
}

//go:build !unix

package serve

import "io/fs"

// isOpenToOthers reports nothing: the mode does not say who can read the file.
func isOpenToOthers(fs.FileInfo) bool { return false }

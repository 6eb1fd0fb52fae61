// Package commitmark distinguishes offsets that a consumer of siding committed from offsets that an
// operator set. Siding writes a mark into an offset's metadata; tools leave that empty.
package commitmark

import "strings"

// Mark is the metadata of the offsets that a consumer commits.
const Mark = "siding"

// Marked reports whether a consumer of any version committed an offset. Later versions may append
// to the mark.
func Marked(metadata string) bool { return strings.HasPrefix(metadata, Mark) }

// Package commitmark is how an offset that a consumer of siding committed is told from one that somebody set by hand: by the offset's
// metadata, which a tool leaves empty.
package commitmark

import "strings"

// Mark is the metadata of what a consumer commits.
const Mark = "siding"

// Marked reports whether a consumer committed an offset, of whatever version: a later one may have more to say behind the mark.
func Marked(metadata string) bool { return strings.HasPrefix(metadata, Mark) }

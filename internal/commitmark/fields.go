package commitmark

import (
	"iter"
	"strconv"
	"strings"
)

// fields iterates over the fields of the metadata of an offset: names and values. It has none if
// the text is not siding's, or of another offset.
func fields(metadata string, offset int64) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if !Marked(metadata) {
			return
		}
		for field := range strings.SplitSeq(metadata, " ") {
			if floor, ok := strings.CutPrefix(field, "f="); ok && floor != strconv.FormatInt(offset, 36) {
				return
			}
		}
		for field := range strings.SplitSeq(metadata, " ") {
			if name, value, ok := strings.Cut(field, "="); ok && !yield(name, value) {
				return
			}
		}
	}
}

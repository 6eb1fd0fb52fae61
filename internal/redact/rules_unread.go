package redact

import "fmt"

// Unread hides all of a key or a value that a schema describes and that could not be read, if there
// are paths: they may lead into it, and its bytes have no names of members.
func (r *Rules) Unread(b []byte) (shown []byte, hidden bool) {
	if r == nil || len(r.paths) == 0 || len(b) == 0 {
		return b, false
	}
	return []byte(fmt.Sprintf("%s %d bytes that cannot be read by their schema", Mark, len(b))), true
}

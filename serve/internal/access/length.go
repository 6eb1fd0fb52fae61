package access

import (
	"net/url"
	"slices"
	"time"
)

// Length is how long a request may take.
type Length int

// The lengths.
const (
	// Usual is that of what the server knows, or reads in a few places.
	Usual Length = iota
	// Long is that of what may read a whole topic.
	Long
	// Stream is that of an answer that goes on while there is something to send.
	Stream
	// Live is that of the events of a page. It is a stream that costs next to nothing.
	Live
)

// ReadsLetters reports whether an address has a filter that takes reading the letters of a topic.
func ReadsLetters(q url.Values) bool {
	return slices.ContainsFunc([]string{"where", "key", "header", "attempts"}, q.Has)
}

// LongTime bounds a request of length [Long].
const LongTime = 10 * time.Minute

package headers

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

// Strip returns h without the reserved headers, as the handler sees them. The result is h itself if
// nothing has to be removed, nil if nothing is left, and a new slice otherwise. It does not change
// h.
func Strip(h []kgo.RecordHeader) []kgo.RecordHeader {
	n := countReserved(h)
	switch n {
	case 0:
		return h
	case len(h):
		return nil
	}
	return appendUser(make([]kgo.RecordHeader, 0, len(h)-n), h)
}

func countReserved(h []kgo.RecordHeader) (n int) {
	for i := range h {
		if reserved.Of(h[i].Key) != reserved.User {
			n++
		}
	}
	return n
}

// appendUser appends the headers of h that are not reserved.
func appendUser(to, h []kgo.RecordHeader) []kgo.RecordHeader {
	for i := range h {
		if reserved.Of(h[i].Key) == reserved.User {
			to = append(to, h[i])
		}
	}
	return to
}

package edit

import "github.com/twmb/franz-go/pkg/kgo"

// headerEdit sets or unsets one header.
type headerEdit struct {
	name  string
	value []byte
	set   bool
}

// apply puts the new header where the first of its name was, so that the order of the others stays; a new name comes
// last. The slice that it is given is not changed.
func (e headerEdit) apply(h []kgo.RecordHeader) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(h)+1)
	done := !e.set
	put := func() {
		if !done {
			out = append(out, kgo.RecordHeader{Key: e.name, Value: e.value})
		}
		done = true
	}
	for _, x := range h {
		if x.Key == e.name {
			put()
			continue
		}
		out = append(out, x)
	}
	put()
	return out
}

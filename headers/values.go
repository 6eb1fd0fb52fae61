package headers

import (
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

// Values iterates over the headers by key and value. It gives the fields of dlq-meta besides, by
// the keys of the headers that they had before there was dlq-meta: that of "host" is dlq-host. So
// those who look for a header by its key find it in each format, but not what dlq-meta leaves out:
// see the package's format.
func Values(h []kgo.RecordHeader) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range h {
			if !yield(h[i].Key, h[i].Value) {
				return
			}
			if h[i].Key != MetaFields {
				continue
			}
			for text := h[i].Value; ; {
				f, rest, ok := reserved.NextField(text)
				if !ok {
					break
				}
				value := f.Value
				if f.Key != reserved.History { // its percent signs are its own
					value = reserved.Unescape(value)
				}
				if f.Key != reserved.User && !yield(f.Key.String(), value) {
					return
				}
				text = rest
			}
		}
	}
}

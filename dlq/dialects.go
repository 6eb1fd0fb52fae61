package dlq

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Dialects are the ways in which programs write dead letters, by which a reader understands those
// that siding did not write. Nil has none. It is safe for concurrent use.
type Dialects struct {
	all []Dialect
	// by a header's key
	detecting map[string][]detection
}

// detection is a header by which a dialect is recognized.
type detection struct {
	dialect int
	bit     uint8
}

// builtin are the dialects of a reader that was given no others.
var builtin = func() *Dialects {
	d, err := NewDialects()
	if err != nil {
		panic(err) // a test would have found it
	}
	return d
}()

// NewDialects returns the built-in dialects and a team's own. It returns an error about each that
// is not valid, or whose name or detecting headers are those of another one.
func NewDialects(own ...Dialect) (*Dialects, error) {
	d := &Dialects{all: append(BuiltinDialects(), own...), detecting: map[string][]detection{}}
	var errs []error
	for i := range d.all {
		is := &d.all[i]
		if err := is.validate(); err != nil {
			errs = append(errs, fmt.Errorf("dialect %q: %w", is.Name, err))
		}
		for j := range i {
			if d.all[j].Name == is.Name {
				errs = append(errs, fmt.Errorf("dialect %q: there is another one of this name", is.Name))
			}
		}
		for n, key := range is.Detect {
			if n < mostDetecting {
				for _, other := range d.detecting[key] {
					errs = append(errs, fmt.Errorf("dialect %q: %q is a header that detects dialect %q", is.Name, key, d.all[other.dialect].Name))
				}
				d.detecting[key] = append(d.detecting[key], detection{i, 1 << n})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dlq: %w", err)
	}
	return d, nil
}

// Names returns the names of the dialects.
func (d *Dialects) Names() []string {
	if d == nil {
		return nil
	}
	names := make([]string, len(d.all))
	for i := range d.all {
		names[i] = d.all[i].Name
	}
	return names
}

// of returns the dialect of a record's headers; nil if it is none of these. Where headers of
// several dialects are complete, the one of the last header counts.
func (d *Dialects) of(h []kgo.RecordHeader) (found *Dialect) {
	if d == nil {
		return nil
	}
	var seen map[int]uint8
	for i := range h {
		for _, is := range d.detecting[h[i].Key] {
			whole := uint8(1<<len(d.all[is.dialect].Detect) - 1)
			bits := is.bit
			if bits != whole { // it takes several headers
				if seen == nil {
					seen = map[int]uint8{}
				}
				bits |= seen[is.dialect]
				seen[is.dialect] = bits
			}
			if bits == whole {
				found = &d.all[is.dialect]
			}
		}
	}
	return found
}

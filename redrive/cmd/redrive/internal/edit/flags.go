package edit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Flags are the options of the command line.
type Flags struct {
	set, unset       []string
	patch, valueFile string
}

// AddFlags puts them into a set.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{}
	set.StringArrayVar(&f.set, "set-header", nil, "`name=value`: the record goes back with this header, in place of all that have its name")
	set.StringArrayVar(&f.unset, "unset-header", nil, "`name`: it goes back without the headers of this name")
	set.StringVar(&f.patch, "patch", "", "JSON merge patch (RFC 7396) for the value: `JSON` that begins with {, a file, or - for stdin")
	set.StringVar(&f.valueFile, "value-file", "", "`file` with a new value for the one record that is chosen; - for stdin")
	return f
}

// An Edit changes records on their way back. It is safe for use by several goroutines.
type Edit struct {
	// Single says that it is meant for one record only: a run over more must be refused.
	Single bool

	headers []headerEdit
	value   func(value []byte) ([]byte, error) // nil leaves it
}

// Compile makes an edit of the flags; without any it is nil. Its error has every problem, one a line. Stdin is read where
// a flag asks for it.
func (f *Flags) Compile(stdin io.Reader) (*Edit, error) {
	if len(f.set)+len(f.unset) == 0 && f.patch+f.valueFile == "" {
		return nil, nil
	}
	e := &Edit{}
	errs := e.addHeaders(f)
	switch {
	case f.patch != "" && f.valueFile != "":
		errs = append(errs, errors.New("--patch and --value-file both say what the value is to be: take one out"))
	case f.patch != "":
		text := []byte(f.patch)
		if !strings.HasPrefix(strings.TrimSpace(f.patch), "{") {
			var err error
			if text, err = read(f.patch, stdin); err != nil {
				errs = append(errs, fmt.Errorf("--patch: %w; JSON given here begins with {", err))
				break
			}
		}
		p, err := newPatch(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--patch: %w", err))
			break
		}
		e.value = p.apply
	case f.valueFile != "":
		value, err := read(f.valueFile, stdin)
		if err != nil {
			errs = append(errs, fmt.Errorf("--value-file: %w", err))
		}
		e.Single = true
		e.value = func([]byte) ([]byte, error) { return value, nil }
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, nil
}

// Apply gives the headers and the value that a record goes back with. What it is given stays as it is. A value that
// cannot be changed as asked is an error, and then the record must stay where it is.
func (e *Edit) Apply(h []kgo.RecordHeader, value []byte) ([]kgo.RecordHeader, []byte, error) {
	if e.value != nil {
		var err error
		if value, err = e.value(value); err != nil {
			return nil, nil, err
		}
	}
	for _, edit := range e.headers {
		h = edit.apply(h)
	}
	return h, value, nil
}

// ChangesValue reports whether the value is changed, too.
func (e *Edit) ChangesValue() bool { return e.value != nil }

func (e *Edit) addHeaders(f *Flags) (errs []error) {
	named := map[string]bool{}
	name := func(flag, name string) {
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("--%s: the header has no name", flag))
		case headers.Reserved(name):
			errs = append(errs, fmt.Errorf("--%s: %s is siding's own, and redrive sets it", flag, name))
		case named[name]:
			errs = append(errs, fmt.Errorf("--%s: %s is set or unset before: say it once", flag, name))
		}
		named[name] = true
	}
	for _, s := range f.set {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--set-header: %q is not name=value; --unset-header takes one away", s))
			continue
		}
		name("set-header", key)
		e.headers = append(e.headers, headerEdit{name: key, value: []byte(value), set: true})
	}
	for _, key := range f.unset {
		name("unset-header", key)
		e.headers = append(e.headers, headerEdit{name: key})
	}
	return errs
}

// read reads a file, or stdin for "-".
func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		b, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		return b, nil
	}
	b, err := os.ReadFile(file)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("read %s: %w", pe.Path, pe.Err)
	}
	return b, err
}

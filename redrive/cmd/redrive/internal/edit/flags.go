package edit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/mergepatch"
	"github.com/sidingkafka/siding/redrive"
)

// Flags are the options of the command line.
type Flags struct {
	set, unset       []string
	patch, valueFile string
}

// AddFlags puts them into a set.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{}
	set.StringArrayVar(&f.set, "set-header", nil, "set the header `name=value`, in place of all headers of that name")
	set.StringArrayVar(&f.unset, "unset-header", nil, "remove all headers of this `name`")
	set.StringVar(&f.patch, "patch", "", "JSON merge patch (RFC 7396) for the value, by its schema if there is a --registry: `JSON` that begins with {, a file, or - for stdin")
	set.StringVar(&f.valueFile, "value-file", "", "`file` with a new value for the one record that is chosen, as JSON if there is a schema for it; - for stdin")
	return f
}

// Compile makes an edit of the flags. Its error has every problem, one a line. Stdin is read where
// a flag asks for it.
func (f *Flags) Compile(stdin io.Reader) (redrive.Edit, error) {
	var e redrive.Edit
	errs := f.addHeaders(&e)
	switch {
	case f.patch != "" && f.valueFile != "":
		errs = append(errs, errors.New("--patch and --value-file both set the value: omit one"))
	case f.patch != "":
		text := []byte(f.patch)
		if !strings.HasPrefix(strings.TrimSpace(f.patch), "{") {
			var err error
			if text, err = read(f.patch, stdin); err != nil {
				errs = append(errs, fmt.Errorf("--patch: %w; JSON given here begins with {", err))
				break
			}
		}
		if err := mergepatch.CheckObject(text); err != nil {
			errs = append(errs, fmt.Errorf("--patch: the patch %w", err))
			break
		}
		e.Patch = text
	case f.valueFile != "":
		value, err := read(f.valueFile, stdin)
		if err != nil {
			errs = append(errs, fmt.Errorf("--value-file: %w", err))
		}
		e.Value = append([]byte{}, value...) // empty, and not nil, where the file is
	}
	if err := errors.Join(errs...); err != nil {
		return redrive.Edit{}, err
	}
	return e, nil
}

func (f *Flags) addHeaders(e *redrive.Edit) (errs []error) {
	named := map[string]bool{}
	name := func(flag, name string) {
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("--%s: the header has no name", flag))
		case headers.Reserved(name):
			errs = append(errs, fmt.Errorf("--%s: %s is siding's own, and redrive sets it", flag, name))
		case named[name]:
			errs = append(errs, fmt.Errorf("--%s: %s is set or unset twice: name it once", flag, name))
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
		e.Set = append(e.Set, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	for _, key := range f.unset {
		name("unset-header", key)
		e.Unset = append(e.Unset, key)
	}
	return errs
}

// read reads a file, or stdin for "-".
func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

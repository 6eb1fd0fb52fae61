package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// File is the text of a file that was parsed.
type File struct {
	name  string
	text  []byte
	root  ast.Node       // nil if the file has no value
	lines map[string]int // of keys
	// mistakes are the keys that are wrong, or whose values are.
	mistakes []string
}

// Parse parses a text. The name is for errors.
func Parse(name string, text []byte) (*File, error) {
	f := &File{name: name, text: text, lines: map[string]int{}}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, f.atLine(err)
	}
	for _, d := range parsed.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case f.root != nil:
			return nil, &lineError{name, d.Body.GetToken().Position.Line, errors.New("a second document begins here: the file has one")}
		default:
			f.root = d.Body
		}
	}
	f.index(f.root, "")
	return f, nil
}

// Decode parses a text, and sets the fields of the struct that into points to. With an error there
// may be a file, too: then the fields have what is right, and [File.Further] what else is wrong.
func Decode(name string, text []byte, into any) (*File, error) {
	f, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	if err := f.check(into); err != nil {
		if f.root == nil || yaml.NodeToValue(f.root, into, yaml.CustomUnmarshaler(setDuration)) != nil {
			return nil, err
		}
		return f, err
	}
	if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict(), yaml.CustomUnmarshaler(setDuration)); err != nil {
		return nil, f.atLine(err)
	}
	return f, nil
}

// atLine puts an error of the YAML library into one line with the file and the line of it.
func (f *File) atLine(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return &lineError{file: f.name, err: err}
	}
	return &lineError{f.name, at.GetToken().Position.Line, errors.New(at.GetMessage())}
}

// KeyError reports a key whose value is not allowed.
type KeyError struct {
	// Key is the path of the key in the file, as in topics[0].match.
	Key string
	// Problem has the value, and what is allowed.
	Problem string
}

// Error names the key and the problem.
func (e *KeyError) Error() string { return e.Key + ": " + e.Problem }

// lineError is an error in a line of a file.
type lineError struct {
	file string
	line int // 0 if it is not known
	err  error
}

func (e *lineError) Error() string {
	if e.line == 0 {
		return e.file + ": " + e.err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

// At gives each [KeyError] of an error the file and the line of its key, and orders them by line.
// If the file lacks the key, the line is that of what the key would belong to. Errors that have a
// line already, also those of other files, stay as they are.
func (f *File) At(err error) error {
	var all []error
	for _, e := range flat(err) {
		if _, ok := errors.AsType[*lineError](e); !ok {
			at := &lineError{file: f.name, err: e}
			if key, ok := errors.AsType[*KeyError](e); ok {
				at.line = f.line(key.Key)
			}
			e = at
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b error) int { return cmp.Compare(f.rank(a), f.rank(b)) })
	return errors.Join(all...)
}

// Further returns the errors of a check of what [Decode] read that do not follow from mistakes of
// the file. An error follows from one at its key; from one beside it, if the file lacks the key or
// the error names the other; and from one within what dependsOn has for the key.
func (f *File) Further(err error, dependsOn map[string]string) error {
	var all []error
	for _, e := range flat(err) {
		is, ok := errors.AsType[*KeyError](e)
		_, placed := errors.AsType[*lineError](e) // in another file
		if !ok || placed || !slices.ContainsFunc(f.mistakes, func(mistake string) bool {
			beside := above(mistake)
			on := dependsOn[is.Key]
			return within(is.Key, mistake) || within(mistake, is.Key) || on != "" && within(mistake, on) ||
				above(is.Key) == beside && (f.lines[is.Key] == 0 || strings.Contains(is.Problem, strings.TrimPrefix(mistake[len(beside):], ".")))
		}) {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}

// above returns the key to which a key belongs; it is empty at the top.
func above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// within reports whether a key is another one, or belongs to it.
func within(key, other string) bool {
	rest, ok := strings.CutPrefix(key, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// rank orders errors: those of the file by line, then those of others.
func (f *File) rank(err error) int {
	if at, ok := errors.AsType[*lineError](err); ok && at.file == f.name {
		return at.line
	}
	return math.MaxInt
}

// flat returns the errors that were joined, also within each other.
func flat(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, flat(e)...)
	}
	return all
}

// Has reports whether the file has a key, whatever its value.
func (f *File) Has(key string) bool { return f.lines[key] > 0 }

func (f *File) line(key string) int {
	for {
		if line := f.lines[key]; line > 0 {
			return line
		}
		if key = above(key); key == "" {
			return 0
		}
	}
}

// index notes the lines of all keys below a node.
func (f *File) index(n ast.Node, key string) {
	switch n := value(n).(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			k := join(key, v.Key.GetToken().Value)
			f.lines[k] = v.Key.GetToken().Position.Line
			f.index(v.Value, k)
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			k := fmt.Sprintf("%s[%d]", key, i)
			f.lines[k] = v.GetToken().Position.Line
			f.index(v, k)
		}
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// value returns a node without its anchor or tag.
func value(n ast.Node) ast.Node {
	for {
		switch is := n.(type) {
		case *ast.AnchorNode:
			n = is.Value
		case *ast.TagNode:
			n = is.Value
		default:
			return n
		}
	}
}

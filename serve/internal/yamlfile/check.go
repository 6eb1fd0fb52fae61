package yamlfile

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// checker compares a file with the types of what it is read into, and takes out of it what is
// wrong. The YAML library would stop at the first mistake, and name Go types.
type checker struct {
	file *File
	errs []error
}

// check returns the mistakes of a file that is to be read into a struct. The file has the rest
// then, and no root if that is wrong itself.
func (f *File) check(into any) error {
	c := &checker{file: f}
	if f.root != nil && !c.node(f.root, reflect.TypeOf(into), "") {
		f.root = nil
	}
	return errors.Join(c.errs...)
}

// wrong notes a mistake. It returns false, which says so.
func (c *checker) wrong(line int, key, format string, args ...any) bool {
	err := fmt.Errorf(format, args...)
	if key != "" {
		err = &KeyError{Key: key, Problem: err.Error()}
		c.file.mistakes = append(c.file.mistakes, key)
	}
	c.errs = append(c.errs, &lineError{c.file.name, line, err})
	return false
}

var (
	durations = reflect.TypeFor[time.Duration]()
	times     = reflect.TypeFor[time.Time]()
	texts     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// node checks a value against the type of its field, and reports whether it can be read. Null
// stands for the zero value, and the library says itself where an alias leads to.
func (c *checker) node(n ast.Node, t reflect.Type, key string) bool {
	n = value(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n == nil || n.Type() == ast.NullType || n.Type() == ast.AliasType {
		return true
	}
	line := n.GetToken().Position.Line
	if at, ok := c.file.lines[key]; ok {
		line = at
	}
	switch {
	case t == durations:
		return c.text(n, line, key, "a duration", ": as in 90s, 5m, 4h, 180d", func(s string) error {
			_, err := Duration(s)
			return err
		})
	case t == times:
		return c.text(n, line, key, "a time", ": as in 2026-11-23T17:00:00Z", func(s string) error {
			if _, err := time.Parse(time.RFC3339, s); err != nil {
				return fmt.Errorf("%q is not a time: as in 2026-11-23T17:00:00Z", s)
			}
			return nil
		})
	case reflect.PointerTo(t).Implements(texts):
		return c.text(n, line, key, "a word", "", func(s string) error {
			return reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
		})
	case t.Kind() == reflect.Struct:
		return c.mapping(n, t, line, key)
	case t.Kind() == reflect.Map:
		m, ok := n.(*ast.MappingNode)
		if !ok {
			return c.wrong(line, key, "%s, but names with values are expected", kind(n))
		}
		m.Values = slices.DeleteFunc(m.Values, func(v *ast.MappingValueNode) bool {
			return !c.node(v.Value, t.Elem(), join(key, v.Key.GetToken().Value))
		})
		return true
	case t.Kind() == reflect.Slice:
		s, ok := n.(*ast.SequenceNode)
		if !ok {
			return c.wrong(line, key, "%s, but a list is expected: as in [a, b]", kind(n))
		}
		for i, v := range s.Values {
			if !c.node(v, t.Elem(), fmt.Sprintf("%s[%d]", key, i)) {
				s.Values[i] = ast.Null(v.GetToken()) // the others keep their numbers
			}
		}
		return true
	case t.Kind() == reflect.String:
		return c.text(n, line, key, aText, "", func(string) error { return nil })
	}
	return c.number(n, t, line, key)
}

// aText is what fields of type string take.
const aText = "a text"

// text checks a value that is written as one word or text. The hint says how.
func (c *checker) text(n ast.Node, line int, key, expected, hint string, check func(string) error) bool {
	var text string
	switch is := n.(type) {
	case *ast.MappingNode, *ast.SequenceNode:
		return c.wrong(line, key, "%s, but %s is expected%s", kind(n), expected, hint)
	case *ast.LiteralNode:
		text = is.Value.Value
	default:
		text = n.GetToken().Value
		// The library would write 0123 and 1e3 anew, as the numbers that they are to YAML.
		if s, ok := n.(ast.ScalarNode); ok && n.Type() != ast.StringType && fmt.Sprint(s.GetValue()) != text && expected == aText {
			return c.wrong(line, key, "it is not read as a text: put it in quotes")
		}
	}
	if err := check(text); err != nil {
		return c.wrong(line, key, "%v", err)
	}
	return true
}

// number checks a number, or what is true or false.
func (c *checker) number(n ast.Node, t reflect.Type, line int, key string) bool {
	var ok bool
	var expected string
	switch t.Kind() {
	case reflect.Bool:
		_, ok = n.(*ast.BoolNode)
		expected = "true or false"
	case reflect.Float32, reflect.Float64:
		ok = n.Type() == ast.IntegerType || n.Type() == ast.FloatType
		expected = "a number"
	default:
		expected = "a whole number"
		if i, isInteger := n.(*ast.IntegerNode); isInteger {
			switch v := i.Value.(type) {
			case int64:
				ok = !reflect.Zero(t).CanInt() || !reflect.Zero(t).OverflowInt(v)
			case uint64:
				ok = reflect.Zero(t).CanInt() && v <= 1<<63-1 && !reflect.Zero(t).OverflowInt(int64(v))
			}
			expected = "within the numbers that are possible here"
		}
	}
	switch {
	case ok:
		return true
	case n.Type() == ast.MappingType || n.Type() == ast.SequenceType:
		return c.wrong(line, key, "%s, but %s is expected", kind(n), expected)
	}
	return c.wrong(line, key, "%q is not %s", n.GetToken().Value, expected)
}

// mapping checks the keys of a struct.
func (c *checker) mapping(n ast.Node, t reflect.Type, line int, key string) bool {
	fields := fieldsOf(t)
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return c.wrong(line, key, "%s, but keys with values are expected: %s", kind(n), strings.Join(names, ", "))
	}
	m.Values = slices.DeleteFunc(m.Values, func(v *ast.MappingValueNode) bool {
		if v.Key.IsMergeKey() {
			return false
		}
		name := v.Key.GetToken().Value
		if i := slices.Index(names, name); i >= 0 {
			return !c.node(v.Value, fields[i].is, join(key, name))
		}
		advice := "allowed are " + strings.Join(names, ", ")
		if near := nearest(name, names); near != "" {
			advice = "did you mean " + near + "?"
		}
		return !c.wrong(v.Key.GetToken().Position.Line, join(key, name), "there is no such key; %s", advice)
	})
	return true
}

// kind says in a user's words what a node is. It does not quote it: it may be a secret.
func kind(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType:
		return "it has keys"
	case ast.SequenceType:
		return "it is a list"
	}
	return "it is a single value"
}

// Package jsonschema checks values that are JSON already by their JSON schemas.
package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Schema is a JSON schema. It is safe for concurrent use.
type Schema struct {
	title, id  string
	source     string
	referenced map[string]string

	mu       sync.Mutex
	compiled *jsonschema.Schema // nil until it is needed
	err      error
	steps    steps
}

// Parse reads a schema. Those that it refers to are by the names by which it does so.
func Parse(source string, referenced map[string]string) (*Schema, error) {
	s := &Schema{source: source, referenced: referenced}
	for _, source := range referenced {
		if err := small([]byte(source)); err != nil {
			return nil, fmt.Errorf("a schema that it refers to: %w", err)
		}
	}
	if err := small([]byte(source)); err != nil {
		return nil, err
	}
	var head struct {
		Title any `json:"title"`
		ID    any `json:"$id"`
	}
	if json.Unmarshal([]byte(source), &head) == nil {
		s.title, _ = head.Title.(string)
		s.id, _ = head.ID.(string)
	}
	return s, nil
}

// check says whether text is JSON that does not nest too deep.
func check(b []byte) error {
	switch {
	case !utf8.Valid(b) || !json.Valid(b):
		return errors.New("it is no JSON")
	case text.Depth(string(b)) > text.MostDepth:
		return fmt.Errorf("it nests deeper than %d levels", text.MostDepth)
	}
	return nil
}

// small is check, and says whether comparing it takes long.
func small(b []byte) error {
	if err := check(b); err != nil {
		return err
	}
	return text.Numbers(string(b))
}

// Name is the schema's title, or its id.
func (s *Schema) Name() string {
	if s.title == "" {
		return s.id
	}
	return s.title
}

// Decode returns a value as it was written, if it is JSON. It may break the schema: that may be why
// somebody looks at it.
func (s *Schema) Decode(data []byte) ([]byte, error) { return data, check(data) }

// Encode returns JSON as it is, if it fits the schema.
func (s *Schema) Encode(data []byte) ([]byte, error) {
	if err := small(data); err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiled == nil && s.err == nil {
		s.err = s.bounded(s.compile)
	}
	if s.err != nil {
		return nil, fmt.Errorf("the schema can't be checked: %w", s.err)
	}
	return data, s.validate(v)
}

func (s *Schema) validate(v any) error {
	err := s.bounded(func() error { return s.compiled.Validate(v) })
	if broken, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		for len(broken.Causes) > 0 {
			broken = broken.Causes[0]
		}
		return errors.New(strings.TrimPrefix(broken.Error(), "jsonschema validation failed with "))
	}
	return err
}

// bounded runs what compares JSON with schemas.
func (s *Schema) bounded(f func() error) (err error) {
	s.steps.left = mostSteps
	defer func() {
		if p := recover(); p == errSteps { //nolint:errorlint // it is the very value
			err = errSteps
		} else if p != nil {
			panic(p)
		}
	}()
	return f()
}

// compile reads the schema, which sees only those that the registry says it refers to.
func (s *Schema) compile() error {
	const base = "registry:///"
	root := base + "schema.json"
	if u, err := url.Parse(s.id); err == nil && u.IsAbs() {
		u.Fragment = ""
		root = u.String()
	}
	l := loader{}
	for name, source := range s.referenced {
		for _, from := range []string{base, root} {
			if at, err := url.Parse(from); err == nil {
				if to, err := at.Parse(name); err == nil {
					l[to.String()] = source
				}
			}
		}
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(l)
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "registry:steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return &s.steps, nil },
	})
	c.AssertVocabs()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(s.source))
	if err != nil {
		return err
	}
	if err := c.AddResource(root, doc); err != nil {
		return err
	}
	s.compiled, err = c.Compile(root)
	return err
}

// loader has the schemas that one refers to, by their addresses. It never asks the network, nor
// reads a file.
type loader map[string]string

// Load implements [jsonschema.URLLoader].
func (l loader) Load(address string) (any, error) {
	source, ok := l[address]
	if !ok {
		return nil, errors.New("it is not among the references of the schema")
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(source))
}

// mostSteps bounds the schemas that one value is compared with: those that name one another several
// times multiply.
const mostSteps = 100_000

var errSteps = errors.New("it takes too long to compare it with the schema")

// steps counts them. The library asks it as if it were a keyword of each schema.
type steps struct{ left int }

// Validate implements [jsonschema.SchemaExt].
func (s *steps) Validate(*jsonschema.ValidatorContext, any) {
	if s.left--; s.left < 0 {
		panic(errSteps) // validate recovers it
	}
}

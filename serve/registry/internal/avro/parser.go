package avro

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parser makes the types of schemas. They share their names: one finds those of the ones before.
type parser struct{ named map[string]*node }

// primitive are the types that have no parts.
var primitive = []string{"null", "boolean", "int", "long", "float", "double", "string", "bytes"}

func (p *parser) parse(source string) (*node, error) {
	v, err := read([]byte(source))
	if err != nil {
		return nil, err
	}
	return p.node(v, "")
}

// node makes a type of its JSON, within a namespace.
func (p *parser) node(v any, space string) (*node, error) {
	switch v := v.(type) {
	case string:
		return p.find(v, space)
	case []any:
		made := &node{kind: "union", name: "union"}
		for _, b := range v {
			branch, err := p.node(b, space)
			if err != nil {
				return nil, err
			}
			made.branches = append(made.branches, branch)
		}
		return made, nil
	case map[string]any:
		return p.object(v, space)
	}
	return nil, fmt.Errorf("%s is no type", kindOf(v))
}

// find returns a type by its name. A name without a dot is first one of the same namespace.
func (p *parser) find(name, space string) (*node, error) {
	if slices.Contains(primitive, name) {
		return &node{kind: name, name: name}, nil
	}
	for _, full := range []string{space + "." + name, name} {
		if known := p.named[full]; known != nil {
			return known, nil
		}
	}
	return nil, fmt.Errorf("the type %s is not defined", brief(name))
}

func (p *parser) object(v map[string]any, space string) (made *node, err error) {
	kind, ok := v["type"].(string)
	if !ok {
		return p.node(v["type"], space)
	}
	switch kind {
	case "array", "map":
		made = &node{kind: kind, name: kind}
		part := map[string]string{"array": "items", "map": "values"}[kind]
		if made.item, err = p.node(v[part], space); err != nil {
			return nil, fmt.Errorf("%s of the %s: %w", part, kind, err)
		}
		return made, nil
	case "record", "error", "enum", "fixed":
		return p.define(v, kind, space)
	}
	if made, err = p.find(kind, space); err == nil && made.kind == kind {
		made.means(v)
	}
	return made, err
}

// define makes a type with a name.
func (p *parser) define(v map[string]any, kind, space string) (*node, error) {
	name, _ := v["name"].(string)
	if name == "" {
		return nil, fmt.Errorf("a type of the kind %s has no name", kind)
	}
	if given, ok := v["namespace"].(string); ok {
		space = given
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		space = name[:i]
	} else if space != "" {
		name = space + "." + name
	}
	if p.named[name] != nil {
		return nil, fmt.Errorf("the type %s is defined twice", brief(name))
	}
	made := &node{kind: kind, name: name}
	p.named[name] = made
	switch kind {
	case "enum":
		symbols, _ := v["symbols"].([]any)
		for _, s := range symbols {
			text, _ := s.(string)
			made.symbols = append(made.symbols, text)
		}
		return made, nil
	case "fixed":
		size, ok := whole(v["size"])
		if !ok {
			return nil, fmt.Errorf("%s has no size", brief(name))
		}
		made.size = size
		made.means(v)
		return made, nil
	}
	made.kind = "record"
	if err := p.fields(made, v["fields"], space); err != nil {
		return nil, fmt.Errorf("%s: %w", brief(name), err)
	}
	return made, nil
}

func (p *parser) fields(made *node, v any, space string) error {
	all, ok := v.([]any)
	if !ok {
		return errors.New("it has no list of fields")
	}
	made.byName = make(map[string]int, len(all))
	for _, f := range all {
		is, _ := f.(map[string]any)
		name, _ := is["name"].(string)
		if _, twice := made.byName[name]; name == "" || twice {
			return fmt.Errorf("a field has no name, or its name %s is there twice", brief(name))
		}
		of, err := p.node(is["type"], space)
		if err != nil {
			return fmt.Errorf("field %s: %w", brief(name), err)
		}
		value, optional := is["default"]
		made.byName[name] = len(made.fields)
		made.fields = append(made.fields, field{name: name, of: of, value: value, optional: optional})
	}
	return nil
}

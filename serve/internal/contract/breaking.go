package contract

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// node is a part of an OpenAPI description.
type node = map[string]any

// Breaking compares two OpenAPI 3.1 descriptions, in YAML. It returns the changes that break a
// client of the first one, sorted; none if each request and each answer of before is still one.
// It knows what huma writes: a schema is a reference, or has a type, properties, items, an enum and
// bounds.
func Breaking(before, after []byte) ([]string, error) {
	c := comparison{seen: map[string]bool{}}
	if err := yaml.Unmarshal(before, &c.before); err != nil {
		return nil, fmt.Errorf("the API before: %w", err)
	}
	if err := yaml.Unmarshal(after, &c.after); err != nil {
		return nil, fmt.Errorf("the API after: %w", err)
	}
	now := child(c.after, "paths")
	for path, methods := range child(c.before, "paths") {
		for method, was := range asNode(methods) {
			at := strings.ToUpper(method) + " " + path
			if is := child(child(now, path), method); is == nil {
				c.breaks("%s is gone", at)
			} else {
				c.operation(at, asNode(was), is)
			}
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found), nil
}

type comparison struct {
	before, after node
	found         []string
	seen          map[string]bool // pairs of schemas
}

func (c *comparison) breaks(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func asNode(v any) node {
	n, _ := v.(node)
	return n
}

func child(n node, key string) node { return asNode(n[key]) }

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func (c *comparison) operation(at string, was, is node) {
	name := func(p node) string { return fmt.Sprint(p["in"], " parameter ", p["name"]) }
	params := map[string]node{}
	for _, p := range asList(is["parameters"]) {
		params[name(asNode(p))] = asNode(p)
	}
	for _, p := range asList(was["parameters"]) {
		old := asNode(p)
		now := params[name(old)]
		if now == nil {
			c.breaks("%s: %s is gone", at, name(old))
			continue
		}
		if now["required"] == true && old["required"] != true {
			c.breaks("%s: %s is required now", at, name(old))
		}
		c.schema(at+": "+name(old), child(old, "schema"), child(now, "schema"), request)
		delete(params, name(old))
	}
	for what, p := range params {
		if p["required"] == true {
			c.breaks("%s: %s is new and required", at, what)
		}
	}
	oldBody, body := child(was, "requestBody"), child(is, "requestBody")
	if body["required"] == true && oldBody["required"] != true {
		c.breaks("%s: a body is required now", at)
	}
	c.content(at+": body", oldBody, body, request)
	for status, old := range child(was, "responses") {
		now := child(child(is, "responses"), status)
		if now == nil {
			c.breaks("%s: it no longer answers %s", at, status)
			continue
		}
		c.content(at+": answer "+status, asNode(old), now, response)
	}
}

func (c *comparison) content(at string, was, is node, side direction) {
	now := child(is, "content")
	for kind, old := range child(was, "content") {
		if now[kind] == nil {
			c.breaks("%s is no longer %s", at, kind)
			continue
		}
		c.schema(at, child(asNode(old), "schema"), child(child(now, kind), "schema"), side)
	}
}

// direction is who sends what a schema describes.
type direction bool

const (
	request  direction = false
	response direction = true
)

// resolved follows a reference.
func resolved(doc, schema node) (name string, is node) {
	ref, _ := schema["$ref"].(string)
	if ref == "" {
		return "", schema
	}
	name = ref[strings.LastIndex(ref, "/")+1:]
	return name, child(child(child(doc, "components"), "schemas"), name)
}

func (c *comparison) schema(at string, was, is node, side direction) {
	oldName, old := resolved(c.before, was)
	newName, now := resolved(c.after, is)
	if oldName != "" && newName != "" {
		at = oldName
		pair := fmt.Sprint(oldName, " ", newName, " ", side)
		if c.seen[pair] {
			return
		}
		c.seen[pair] = true
	}
	oldTypes, newTypes := types(old), types(now)
	for _, t := range lacks(oldTypes, newTypes, side) {
		c.breaks("%s: type %s", at, t)
	}
	c.enum(at, old, now, side)
	if side == request {
		c.bounds(at, old, now)
	}
	oldRequired, newRequired := texts(old["required"]), texts(now["required"])
	properties := child(now, "properties")
	for name, p := range child(old, "properties") {
		if properties[name] == nil {
			c.breaks("%s: %s is gone", at, name)
			continue
		}
		c.schema(at+"."+name, asNode(p), child(properties, name), side)
		if side == response && slices.Contains(oldRequired, name) && !slices.Contains(newRequired, name) {
			c.breaks("%s: %s may be absent now", at, name)
		}
	}
	for _, name := range newRequired {
		if side == request && !slices.Contains(oldRequired, name) {
			c.breaks("%s: %s is required now", at, name)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if child(old, inner) != nil && child(now, inner) != nil {
			c.schema(at+"[]", child(old, inner), child(now, inner), side)
		}
	}
}

func types(schema node) []string {
	if t, ok := schema["type"].(string); ok {
		return []string{t}
	}
	return texts(schema["type"])
}

func texts(v any) (all []string) {
	for _, t := range asList(v) {
		all = append(all, fmt.Sprint(t))
	}
	return all
}

// lacks returns which values break: of a request those that are not taken any more, of an answer
// those that are new. No value stands for all.
func lacks(was, is []string, side direction) (all []string) {
	if side == response {
		was, is = is, was
	}
	for _, v := range was {
		if len(is) > 0 && !slices.Contains(is, v) {
			all = append(all, v)
		}
	}
	if len(was) == 0 && len(is) > 0 {
		all = append(all, "any")
	}
	return all
}

// enum compares the values of a schema. New values of an answer are no break: clients pass over
// what they do not know, as the documentation of package api says.
func (c *comparison) enum(at string, was, is node, side direction) {
	old, now := texts(was["enum"]), texts(is["enum"])
	if side == response || len(now) == 0 {
		return
	}
	for _, v := range lacks(old, now, request) {
		c.breaks("%s: value %s is not taken any more", at, v)
	}
}

// bounds compares what a request may have.
func (c *comparison) bounds(at string, was, is node) {
	for key, sign := range map[string]float64{"maximum": 1, "maxLength": 1, "maxItems": 1, "minimum": -1, "minLength": -1, "minItems": -1} {
		old, had := figure(was[key])
		if !had && key == "maximum" && was["format"] == "int32" {
			old, had = math.MaxInt32, true // the format says so
		}
		now, has := figure(is[key])
		if has && (!had || cmp.Compare(sign*now, sign*old) < 0) {
			c.breaks("%s: %s is %v now", at, key, now)
		}
	}
	if old, now := was["pattern"], is["pattern"]; now != nil && old != now {
		c.breaks("%s: the pattern is %v now", at, now)
	}
}

func figure(v any) (f float64, ok bool) {
	switch v := v.(type) {
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Operations returns the ids of all operations of a description, each with its method and path.
func Operations(description []byte) (map[string][2]string, error) {
	var doc node
	if err := yaml.Unmarshal(description, &doc); err != nil {
		return nil, err
	}
	all := map[string][2]string{}
	paths := child(doc, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for method, op := range asNode(paths[path]) {
			all[fmt.Sprint(asNode(op)["operationId"])] = [2]string{strings.ToUpper(method), path}
		}
	}
	return all, nil
}

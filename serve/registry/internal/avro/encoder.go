package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// mostSteps bounds the values that are tried: the branches of unions within unions multiply.
const mostSteps = 500_000

// encoder writes a value.
type encoder struct {
	out      []byte
	branches map[path]int
	depth    int
	steps    int
}

func (e *encoder) long(n int64) { e.out = binary.AppendVarint(e.out, n) }

// errSteps ends what takes too long.
var errSteps = errors.New("it has too many unions to find their branches")

func (e *encoder) value(n *node, v any, at path) error {
	if e.steps++; e.steps > mostSteps {
		return errSteps
	}
	if e.depth++; e.depth > text.MostDepth {
		return fmt.Errorf("it nests deeper than %d levels", text.MostDepth)
	}
	defer func() { e.depth-- }()
	switch n.kind {
	case "record":
		return e.record(n, v, at)
	case "array":
		items, ok := v.([]any)
		if !ok {
			return wrong(v, "a list")
		}
		return e.array(n, items, at)
	case "map":
		members, ok := v.(map[string]any)
		if !ok {
			return wrong(v, "an object")
		}
		return e.object(n, members, at)
	case "union":
		return e.union(n, v, at)
	}
	return e.scalar(n, v)
}

func (e *encoder) scalar(n *node, v any) error {
	switch n.kind {
	case "null":
		if v != nil {
			return wrong(v, "null")
		}
	case "boolean":
		b, ok := v.(bool)
		if !ok {
			return wrong(v, "true or false")
		}
		e.out = append(e.out, 0)
		if b {
			e.out[len(e.out)-1] = 1
		}
	case "int", "long":
		i, err := n.whole(v)
		if err != nil {
			return err
		}
		if n.kind == "int" && int64(int32(i)) != i {
			return fmt.Errorf("%d does not fit an int", i)
		}
		e.long(i)
	case "float", "double":
		f, err := n.float(v)
		if err != nil {
			return err
		}
		if n.kind == "double" {
			e.out = binary.LittleEndian.AppendUint64(e.out, math.Float64bits(f))
			return nil
		}
		e.out = binary.LittleEndian.AppendUint32(e.out, math.Float32bits(float32(f)))
	case "enum":
		s, ok := v.(string)
		i := slices.Index(n.symbols, s)
		if !ok || i < 0 {
			return wrong(v, "a symbol of "+n.name)
		}
		e.long(int64(i))
	case "string":
		s, ok := v.(string)
		if !ok {
			return wrong(v, "text")
		}
		e.long(int64(len(s)))
		e.out = append(e.out, s...)
	default:
		b, err := n.bytes(v)
		if err != nil {
			return err
		}
		if n.kind == "bytes" {
			e.long(int64(len(b)))
		}
		e.out = append(e.out, b...)
	}
	return nil
}

func (e *encoder) record(n *node, v any, at path) error {
	members, ok := v.(map[string]any)
	if !ok {
		return wrong(v, "an object: "+n.name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, ok := n.byName[name]; !ok {
			return fmt.Errorf("%s has no field %s", n.name, brief(name))
		}
	}
	for _, f := range n.fields {
		value, ok := members[f.name]
		switch {
		case ok:
		case f.optional:
			value = f.of.meant(f.value)
		case f.of.kind == "union" && f.of.null() >= 0:
		default:
			return fmt.Errorf("the field %s of %s is missing, and has no default", brief(f.name), n.name)
		}
		if err := e.value(f.of, value, at.to(f.name)); err != nil {
			return within(f.name, err)
		}
	}
	return nil
}

func (e *encoder) array(n *node, items []any, at path) error {
	if len(items) > 0 {
		e.long(int64(len(items)))
	}
	for i, item := range items {
		name := strconv.Itoa(i)
		if err := e.value(n.item, item, at.to(name)); err != nil {
			return within(name, err)
		}
	}
	e.long(0)
	return nil
}

func (e *encoder) object(n *node, members map[string]any, at path) error {
	if len(members) > 0 {
		e.long(int64(len(members)))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		e.long(int64(len(name)))
		e.out = append(e.out, name...)
		if err := e.value(n.item, members[name], at.to(name)); err != nil {
			return within(name, err)
		}
	}
	e.long(0)
	return nil
}

// union writes a value by the first branch that it fits.
func (e *encoder) union(n *node, v any, at path) error {
	order := make([]int, 0, len(n.branches)+1)
	if i, ok := e.branches[at]; ok && i < len(n.branches) {
		order = append(order, i)
	}
	for i := range n.branches {
		order = append(order, i)
	}
	begin, depth := len(e.out), e.depth
	var first error
	try := func(i int, v any) bool {
		e.out, e.depth = e.out[:begin], depth
		e.long(int64(i))
		err := e.value(n.branches[i], v, at)
		if err != nil && (first == nil || n.branches[order[0]].kind == "null") {
			first = err
		}
		return err == nil
	}
	for _, i := range order {
		if try(i, v) {
			return nil
		}
	}
	if members, ok := v.(map[string]any); ok && len(members) == 1 {
		for name, v := range members {
			for _, i := range order {
				if n.branches[i].name == name && try(i, v) {
					return nil
				}
			}
		}
	}
	switch {
	case e.steps > mostSteps:
		return errSteps
	case len(n.branches) == 2 && n.null() >= 0:
		return first
	}
	return fmt.Errorf("%s fits none of the branches %s", kindOf(v), n.names())
}

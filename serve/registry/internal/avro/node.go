package avro

import "strings"

// node is a type of a schema.
type node struct {
	kind     string // record, enum, array, map, fixed, union, or a primitive type
	logical  string
	name     string // the full name of a named type, or the kind
	fields   []field
	byName   map[string]int // fields
	item     *node          // of an array or a map
	branches []*node
	symbols  []string
	size     int // of fixed
	scale    int // of a decimal
	most     int // digits of a decimal; 0 for any
}

type field struct {
	name     string
	of       *node
	value    any // the default
	optional bool
}

// null is the number of a union's branch for null, or -1.
func (n *node) null() int {
	for i, b := range n.branches {
		if b.kind == "null" {
			return i
		}
	}
	return -1
}

// names are those of the branches.
func (n *node) names() string {
	var all []string
	for _, b := range n.branches {
		all = append(all, b.name)
	}
	return strings.Join(all, ", ")
}

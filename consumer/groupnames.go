package consumer

import (
	"slices"
)

// groupNames are the names that the group has, and had: its own first, the oldest last.
type groupNames []string

func (n groupNames) own() string { return n[0] }

// former are the names that the group had, the latest first.
func (n groupNames) former() []string { return n[1:] }

// oldest is the name that the group had first.
func (n groupNames) oldest() string { return n[len(n)-1] }

// has reports whether a record that a group failed is this one's to retry.
func (n groupNames) has(group []byte) bool {
	return slices.ContainsFunc(n, func(name string) bool { return string(group) == name })
}

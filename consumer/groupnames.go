package consumer

import (
	"slices"
)

// groupNames holds the group's name, followed by its former names, the latest first.
type groupNames []string

func (n groupNames) own() string { return n[0] }

// former returns the former names, the latest first.
func (n groupNames) former() []string { return n[1:] }

// oldest returns the group's first name.
func (n groupNames) oldest() string { return n[len(n)-1] }

// has reports whether the group retries records that were failed by the named group.
func (n groupNames) has(group []byte) bool {
	return slices.ContainsFunc(n, func(name string) bool { return string(group) == name })
}

package console

import (
	"maps"
	"net/url"
	"slices"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
)

// form is the filter of a page, as its sender typed it.
type form struct {
	Path                               string
	Class, Fingerprint, Group          string
	Reason, State, Since, Until, Where string
	// MayRead reports whether there is a field for an expression.
	MayRead                            bool
	Reasons, States, Classes, InGroups []string
	Active                             bool
	// More are further values, beyond those that the fields show.
	More []field
}

// field is a hidden field of a form.
type field struct{ Name, Value string }

// newForm returns the form of a filter. groups are what it suggests.
func newForm(f *Filter, path string, mayRead bool, groups []api.Group) *form {
	var more []field // fields have one value each
	one := func(name string, all []string) string {
		if len(all) == 0 {
			return ""
		}
		for _, value := range all[1:] {
			more = append(more, field{name, value})
		}
		return all[0]
	}
	is := &form{
		Path: path, Class: one("class", f.Classes), Fingerprint: one("fingerprint", f.Fingerprints), Group: one("group", f.Groups), Reason: one("reason", f.Reasons), State: f.State, Since: f.since, Until: f.until, Where: f.Where, MayRead: mayRead,
		States: filterStates, Active: f.query() != "",
	}
	for _, place := range f.Offsets {
		more = append(more, field{"offset", place})
	}
	is.More = more
	for _, reason := range []headers.Reason{
		headers.ReasonTerminal, headers.ReasonExhausted, headers.ReasonExpired, headers.ReasonHeld, headers.ReasonDecode, headers.ReasonMalformed, headers.ReasonPanic,
		headers.ReasonCrashLoop, headers.ReasonTooLarge, headers.ReasonUnroutable, headers.ReasonUnsupportedVersion,
	} {
		is.Reasons = append(is.Reasons, string(reason))
	}
	is.suggest(groups)
	return is
}

// suggest has the form offer the classes and the consumer groups of some groups of letters.
func (is *form) suggest(groups []api.Group) {
	seen := map[string]bool{}
	for _, g := range groups {
		if !seen["class "+g.Class] && g.Class != "" && len(is.Classes) < 50 {
			is.Classes = append(is.Classes, g.Class)
		}
		seen["class "+g.Class] = true
		for _, name := range g.Groups {
			if !seen["group "+name] && len(is.InGroups) < 50 {
				is.InGroups = append(is.InGroups, name)
			}
			seen["group "+name] = true
		}
	}
}

// fieldsOf returns the values of an address as fields of a form.
func fieldsOf(q url.Values) (all []field) {
	for _, key := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[key] {
			all = append(all, field{key, v})
		}
	}
	return all
}

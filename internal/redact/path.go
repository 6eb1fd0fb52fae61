package redact

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// A path leads to values within JSON.
type path []step

// A step leads from a value to values within it.
type step struct {
	kind  kind
	name  string // of a member
	index int    // of an element, from 0 on
	// deep steps skip any number of levels first.
	deep bool
	use  *use // of a path's last step
}

// A use is the text of a path, and whether it led to something.
type use struct {
	text  string
	found atomic.Bool
}

type kind int

const (
	member kind = iota
	element
	every // member or element
)

// parsePaths reads paths, several by comma: customer.card, items[*].iban, items[0], ..card,
// ['odd name'].x. A $ at the beginning may be there or not.
func parsePaths(text string) ([]path, error) {
	p := parser{rest: text}
	var all []path
	for {
		before := p.rest
		one, err := p.path()
		if err != nil {
			return nil, fmt.Errorf("%q at column %d: %w", text, len(text)-len(p.rest)+1, err)
		}
		one[len(one)-1].use = &use{text: strings.TrimSpace(before[:len(before)-len(p.rest)])}
		all = append(all, one)
		// --where calls the value of a letter so. A member of this name is hidden, too.
		if s := one[0]; len(one) > 1 && s.kind == member && !s.deep && s.name == "value" {
			all = append(all, one[1:])
		}
		if !p.skip(",") {
			return all, nil
		}
	}
}

type parser struct{ rest string }

func (p *parser) skip(s string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, s)
	return ok
}

// path reads up to a comma, or the end.
func (p *parser) path() (all path, err error) {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	p.skip("$")
	for {
		blank := strings.TrimLeft(p.rest, " \t\n")
		if blank == "" || blank[0] == ',' {
			if p.rest = blank; len(all) == 0 {
				return nil, errors.New("a path is missing, such as customer.card or items[*].iban")
			}
			return all, nil
		}
		var s step
		switch {
		case p.skip(".."):
			s.deep = true
		case p.skip("."), len(all) == 0, p.rest[0] == '[':
		default:
			return nil, errors.New("a . or [ is expected here")
		}
		switch {
		case p.skip("["):
			err = p.bracket(&s)
		case p.skip("*"):
			s.kind = every
		default:
			err = p.bare(&s)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

// bare reads a name without quotes.
func (p *parser) bare(s *step) error {
	end := strings.IndexAny(p.rest, ".[]*,$'\" \t\n")
	if end < 0 {
		end = len(p.rest)
	}
	if end == 0 {
		return errors.New("a name is expected here, in brackets and quotes if it is an odd one: ['a.b']")
	}
	s.name, p.rest = p.rest[:end], p.rest[end:]
	return nil
}

// bracket reads what stands behind a [.
func (p *parser) bracket(s *step) error {
	if p.rest != "" && (p.rest[0] == '\'' || p.rest[0] == '"') {
		name, rest, closed := strings.Cut(p.rest[1:], p.rest[:1]+"]")
		if !closed {
			return errors.New("the name's quote or bracket does not end")
		}
		s.name, p.rest = name, rest
		return nil
	}
	text, rest, closed := strings.Cut(p.rest, "]")
	n, err := strconv.ParseUint(text, 10, 31)
	switch {
	case !closed:
		return errors.New("the bracket does not end")
	case text == "*" || text == "":
		s.kind = every
	case err != nil:
		return errors.New("a bracket takes a number from 0 on, * or a name in quotes")
	default:
		s.kind, s.index = element, int(n)
	}
	p.rest = rest
	return nil
}

// A place is how far several paths lead to a value: by path, the steps that are left.
type place []path

// member is the place of a member of an object. hit reports that a path ends there.
func (at place) member(name string) (next place, hit bool) {
	return at.inner(func(s step) (leads, skips bool) {
		return s.kind == every || s.kind == member && strings.EqualFold(s.name, name), s.deep
	})
}

// element is the place of an element of an array. Names look through arrays: a.b leads to each b of
// a list a, too.
func (at place) element(index int) (next place, hit bool) {
	return at.inner(func(s step) (leads, skips bool) {
		return s.kind == every || s.kind == element && s.index == index, s.deep || s.kind == member
	})
}

// inner is the place of what is within a value: a path's next step leads to it, or skips it.
func (at place) inner(by func(step) (leads, skips bool)) (next place, hit bool) {
	for _, p := range at {
		leads, skips := by(p[0])
		switch {
		case leads && len(p) == 1:
			hit = true
			p[0].use.found.Store(true)
		case leads:
			next = next.with(p[1:])
		}
		if skips {
			next = next.with(p)
		}
	}
	return next.behind(hit), hit
}

// with adds a path once: several ways may lead to the same steps, and in JSON that is nested deeply
// there would be as many of them as levels.
func (at place) with(p path) place {
	if slices.ContainsFunc(at, func(q path) bool { return len(q) == len(p) && &q[0] == &p[0] }) {
		return at
	}
	return append(at, p)
}

// behind is the place within a value. It is unknown what other paths would find in a hidden value,
// so they count as found.
func (at place) behind(hidden bool) place {
	if !hidden {
		return at
	}
	for _, p := range at {
		p[len(p)-1].use.found.Store(true)
	}
	return nil
}

// named reports whether text has the last name of one of the paths, in quotes. A path without a
// name fits any text. JSON that was cut, or that stands behind other bytes, cannot be parsed, and
// has the names of its members.
func (at place) named(text []byte) bool {
	text = bytes.ToLower(text)
	for _, p := range at {
		name := ""
		for _, s := range p {
			if s.kind == member {
				name = `"` + s.name + `"`
			}
		}
		if bytes.Contains(text, bytes.ToLower([]byte(name))) {
			return true
		}
	}
	return false
}

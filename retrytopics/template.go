package retrytopics

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

const (
	placeTopic = "{topic}"
	placeGroup = "{group}"
	placeDelay = "{delay}"
)

// A template is a name with holes: literal text and placeholders in turn.
type template []string

// A reading is one way to fill a template's holes so that it gives a name.
type reading struct {
	topic, group string
	delay        time.Duration
}

type templates struct{ retry, dlq, ledger template }

// compile parses the templates and checks them alone and against each other.
func (n Naming) compile() (templates, error) {
	n = n.withDefaults()
	var (
		ts   templates
		errs []error
	)
	parse := func(field, text string, to *template, delay bool) {
		t, err := parseTemplate(text, delay)
		if err != nil {
			errs = append(errs, fmt.Errorf("naming %s %q: %w", field, text, err))
		}
		*to = t
	}
	parse("Retry", n.Retry, &ts.retry, true)
	parse("DLQ", n.DLQ, &ts.dlq, false)
	parse("Ledger", n.Ledger, &ts.ledger, false)
	if len(errs) == 0 {
		errs = ts.clashes()
	}
	if err := errors.Join(errs...); err != nil {
		return templates{}, err
	}
	return ts, nil
}

func parseTemplate(text string, delay bool) (template, error) {
	var (
		t    template
		errs []error
		rest = text
	)
	for rest != "" {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			t, rest = append(t, rest), ""
			break
		}
		if open > 0 {
			t = append(t, rest[:open])
		}
		end := strings.IndexByte(rest[open:], '}')
		if end < 0 {
			errs = append(errs, errors.New("a brace is not closed"))
			break
		}
		t, rest = append(t, rest[open:open+end+1]), rest[open+end+1:]
	}

	count := map[string]int{}
	literal := false
	for i, part := range t {
		if part[0] != '{' {
			literal = true
			if bad := illegalIn(part); bad != "" {
				errs = append(errs, fmt.Errorf("the characters %q are not allowed in a topic name", bad))
			}
			continue
		}
		count[part]++
		if i > 0 && t[i-1][0] == '{' {
			errs = append(errs, fmt.Errorf("%s and %s need text between them, or a name cannot be read backwards", t[i-1], part))
		}
		if part != placeTopic && part != placeGroup && part != placeDelay {
			errs = append(errs, fmt.Errorf("unknown placeholder %s: there are {topic}, {group} and {delay}", part))
		}
	}
	if !literal {
		errs = append(errs, errors.New("there is no text besides the placeholders"))
	}
	if count[placeTopic] != 1 {
		errs = append(errs, errors.New("{topic} must occur once"))
	}
	if count[placeGroup] > 1 {
		errs = append(errs, errors.New("{group} may occur once at most"))
	}
	switch {
	case delay && count[placeDelay] != 1:
		errs = append(errs, errors.New("{delay} must occur once"))
	case !delay && count[placeDelay] != 0:
		errs = append(errs, errors.New("{delay} belongs in Retry only"))
	}
	return t, errors.Join(errs...)
}

// clashes finds templates that give the same name, or names that are read back as another source's,
// whatever the topic is. It tries one sample: a longer name can only add readings, which Siblings
// checks.
func (ts templates) clashes() []error {
	const topic, group, delay = "t", "g", time.Second
	var errs []error
	seen := map[string]string{}
	for _, x := range []struct {
		field string
		t     template
	}{{"Retry", ts.retry}, {"DLQ", ts.dlq}, {"Ledger", ts.ledger}} {
		name := x.t.expand(topic, group, delay)
		if other, ok := seen[collisionKey(name)]; ok {
			errs = append(errs, fmt.Errorf("naming %s and %s give the same name, or names that differ in '.' and '_' only", other, x.field))
			continue
		}
		seen[collisionKey(name)] = x.field
		if got := ts.sources(name); len(got) != 1 || got[0] != topic {
			errs = append(errs, fmt.Errorf("naming %s: the name it gives for topic %q, %q, reads backwards as a sibling of %q", x.field, topic, name, got))
		}
	}
	return errs
}

func (ts templates) needsGroup() bool {
	return ts.retry.has(placeGroup) || ts.dlq.has(placeGroup) || ts.ledger.has(placeGroup)
}

// sources returns the sources that the topic could be a sibling of, sorted.
func (ts templates) sources(topic string) []string {
	var found []string
	for _, t := range []template{ts.retry, ts.dlq, ts.ledger} {
		for r := range t.readings(topic) {
			found = append(found, r.topic)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (ts templates) tierOf(topic, source, group string) (time.Duration, bool) {
	for r := range ts.retry.readings(topic) {
		if r.topic == source && (r.group == group || !ts.retry.has(placeGroup)) {
			return r.delay, true
		}
	}
	return 0, false
}

func (t template) has(place string) bool { return slices.Contains(t, place) }

func (t template) expand(topic, group string, delay time.Duration) string {
	var b strings.Builder
	for _, part := range t {
		switch part {
		case placeTopic:
			b.WriteString(topic)
		case placeGroup:
			b.WriteString(group)
		case placeDelay:
			b.WriteString(FormatDelay(delay))
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}

// readings yields every way in which the template gives the name. Names have
// 249 characters at most and templates three placeholders, so trying every
// split is cheap; longer names have no reading.
func (t template) readings(name string) iter.Seq[reading] {
	return func(yield func(reading) bool) {
		if len(name) <= maxName {
			t.read(name, reading{}, yield)
		}
	}
}

// read fills the first hole in every possible way and continues with the rest. It returns false
// when yield ends the iteration.
func (t template) read(name string, r reading, yield func(reading) bool) bool {
	if len(t) == 0 {
		return name != "" || yield(r)
	}
	part, rest := t[0], t[1:]
	if part[0] != '{' {
		after, ok := strings.CutPrefix(name, part)
		return !ok || rest.read(after, r, yield)
	}
	for end := 1; end <= len(name); end++ {
		// The text after the hole excludes most ends at once.
		if len(rest) == 0 {
			end = len(name)
		} else if !strings.HasPrefix(name[end:], rest[0]) {
			continue
		}
		fill := name[:end]
		switch part {
		case placeTopic:
			if nameProblem(fill) != nil {
				continue
			}
			r.topic = fill
		case placeGroup:
			r.group = fill
		case placeDelay:
			d, ok := ParseDelay(fill)
			if !ok {
				continue
			}
			r.delay = d
		}
		if !rest.read(name[end:], r, yield) {
			return false
		}
	}
	return true
}

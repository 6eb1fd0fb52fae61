package retrytopics

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxDelay keeps twice a delay within a time.Duration.
const maxDelay = 100 * 365 * 24 * time.Hour

// maxName is Kafka's limit. A partition's folder is the topic's name and a number, and file systems
// allow 255 characters.
const maxName = 249

// A Tier is one delayed retry topic.
type Tier struct {
	Delay time.Duration
	Topic string
}

// Siblings are the topics derived from a source topic.
type Siblings struct {
	Source string
	Tiers  []Tier // strictly ascending by delay; may be empty
	DLQ    string
	Ledger string
}

// Topics returns the names of all siblings: the tiers in order, the dead-letter topic, the ledger.
// It does not include the source.
func (s Siblings) Topics() []string {
	topics := make([]string, 0, len(s.Tiers)+2)
	for _, t := range s.Tiers {
		topics = append(topics, t.Topic)
	}
	return append(topics, s.DLQ, s.Ledger)
}

// Check reports every problem of the siblings of several sources in one error. It checks each
// source as [Naming.Siblings] does, and all together: a source given twice, a sibling that is also
// a source, and names that collide. Names that differ in '.' and '_' only collide too, since Kafka
// refuses the second of them.
func Check(all ...Siblings) error {
	var errs []error
	type owner struct{ name, what string }
	owners := map[string]owner{}
	for _, s := range all {
		errs = append(errs, s.problems()...)
		if o, ok := owners[collisionKey(s.Source)]; ok {
			if o.name == s.Source {
				errs = append(errs, fmt.Errorf("topic %q is given twice", s.Source))
			} else {
				errs = append(errs, fmt.Errorf("topics %q and %q differ in '.' and '_' only: Kafka treats them as one", o.name, s.Source))
			}
			continue
		}
		owners[collisionKey(s.Source)] = owner{s.Source, "a source itself"}
	}
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.Source] {
			continue // the same siblings would repeat the error
		}
		seen[s.Source] = true
		for _, name := range s.Topics() {
			key := collisionKey(name)
			o, ok := owners[key]
			switch {
			case name == "" || key == collisionKey(s.Source):
				// problems reports it.
			case ok && o.what == "a source itself":
				errs = append(errs, fmt.Errorf("topic %q, a sibling of %q, is %s (%q): consume the source only, its siblings follow", name, s.Source, o.what, o.name))
			case ok && o.what != s.Source:
				errs = append(errs, fmt.Errorf("topic %q, a sibling of %q, collides with %q, a sibling of %q", name, s.Source, o.name, o.what))
			case !ok:
				owners[key] = owner{name, s.Source}
			}
		}
	}
	return errors.Join(errs...)
}

// problems returns the errors of the siblings of one source by themselves.
func (s Siblings) problems() []error {
	var errs []error
	if err := nameProblem(s.Source); err != nil {
		// the names of its siblings have the same fault
		return []error{fmt.Errorf("topic %q: %w", s.Source, err)}
	}
	names := map[string]string{collisionKey(s.Source): s.Source}
	for _, name := range s.Topics() {
		if err := nameProblem(name); err != nil {
			errs = append(errs, fmt.Errorf("topic %q, a sibling of %q: %w", name, s.Source, err))
			continue
		}
		if other, ok := names[collisionKey(name)]; ok {
			errs = append(errs, fmt.Errorf("topic %q, a sibling of %q, collides with %q", name, s.Source, other))
			continue
		}
		names[collisionKey(name)] = name
	}
	for i, t := range s.Tiers {
		if err := delayProblem(t.Delay); err != nil {
			errs = append(errs, fmt.Errorf("topic %q: tier %d: %w", s.Source, i+1, err))
		}
		if i > 0 && t.Delay <= s.Tiers[i-1].Delay {
			errs = append(errs, fmt.Errorf("topic %q: tier %d, %s, is not longer than the one before it, %s: tiers are strictly ascending",
				s.Source, i+1, t.Delay, s.Tiers[i-1].Delay))
		}
	}
	return errs
}

func delayProblem(d time.Duration) error {
	switch {
	case d <= 0:
		return fmt.Errorf("delay %s is not positive", d)
	case d > maxDelay:
		return fmt.Errorf("delay %s is longer than %s", d, FormatDelay(maxDelay))
	case d%time.Millisecond != 0:
		return fmt.Errorf("delay %s is not a whole number of milliseconds", d)
	}
	return nil
}

// nameProblem checks a name against Kafka's rules for topics.
func nameProblem(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == "." || name == "..":
		return errors.New("the name is reserved")
	case len(name) > maxName:
		return fmt.Errorf("the name has %d characters, Kafka allows %d", len(name), maxName)
	}
	if bad := illegalIn(name); bad != "" {
		return fmt.Errorf("the characters %q are not allowed: only letters, digits, '.', '_' and '-'", bad)
	}
	return nil
}

// illegalIn returns the characters of s that a topic's name cannot have.
func illegalIn(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return -1
		}
		return r
	}, s)
}

// collisionKey returns the same key for names that cannot coexist in Kafka, because they give the
// same metric names.
func collisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

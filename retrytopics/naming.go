package retrytopics

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Default templates of [Naming].
const (
	DefaultRetry  = "{topic}.retry.{delay}"
	DefaultDLQ    = "{topic}.dlq"
	DefaultLedger = "{topic}.dlq.ledger"
)

// Naming holds the templates of the names of sibling topics. In each, {topic} stands for the source
// topic and must occur once. {group} stands for the consumer group and may occur once; it separates
// groups that consume the same source. {delay} stands for the tier's delay in the form of
// [FormatDelay], in Retry only.
//
// A name must be readable backwards: placeholders need text between them, and no name may be
// readable as a sibling of two sources. [Naming.Siblings] finds names that break this although
// their template allows it. With "{topic}.{group}.dlq" the name "shop.orders.billing.dlq" belongs
// to "shop" or to "shop.orders", so it is refused. Text between the two, as in
// "{topic}.dlq.{group}", avoids that.
//
// The zero value is the default naming.
type Naming struct {
	// Retry names the tiers. Empty means [DefaultRetry].
	Retry string
	// DLQ names the dead-letter topic. Empty means [DefaultDLQ].
	DLQ string
	// Ledger names the topic that holds the outcome of each dead letter. Empty means
	// [DefaultLedger].
	Ledger string
}

func (n Naming) withDefaults() Naming {
	if n.Retry == "" {
		n.Retry = DefaultRetry
	}
	if n.DLQ == "" {
		n.DLQ = DefaultDLQ
	}
	if n.Ledger == "" {
		n.Ledger = DefaultLedger
	}
	return n
}

// Validate reports every problem of the templates in one error.
func (n Naming) Validate() error {
	_, err := n.compile()
	return err
}

// Siblings names the siblings of a source topic for a group, with one tier per delay; no delays
// means no tiers, which is legal. The group matters only if a template has {group}. Delays are
// positive, strictly ascending and whole milliseconds.
//
// The error names every problem of the templates, of the delays and of the names. A name is wrong
// if it has more than 249 characters, or characters that Kafka does not allow. It is also wrong if
// it cannot be read backwards, or collides with another name: Kafka treats '.' and '_' as one. Only
// a ledger may have a name that fits [DefaultLedger].
func (n Naming) Siblings(source, group string, delays ...time.Duration) (Siblings, error) {
	ts, err := n.compile()
	if err != nil {
		return Siblings{}, err
	}
	s := Siblings{Source: source}
	if group == "" && ts.needsGroup() {
		return Siblings{}, fmt.Errorf("topic %q: the naming has {group}, and the group is empty", source)
	}
	for _, d := range delays {
		s.Tiers = append(s.Tiers, Tier{Delay: d, Topic: ts.retry.expand(source, group, d)})
	}
	s.DLQ = ts.dlq.expand(source, group, 0)
	s.Ledger = ts.ledger.expand(source, group, 0)

	errs := s.problems()
	if len(errs) == 0 {
		// Only valid names are worth reading backwards.
		for _, topic := range s.Topics() {
			if got := ts.sources(topic); len(got) != 1 || got[0] != source {
				errs = append(errs, fmt.Errorf(
					"topic %q of source %q reads backwards as a sibling of %q: put text between the placeholders that the names do not contain", topic, source, got))
			}
			if _, ledger := defaultLedgerOf(topic); ledger && topic != s.Ledger {
				errs = append(errs, fmt.Errorf(
					"topic %q of source %q has the name of a ledger by the default naming, and would be taken for one: choose another template or group", topic, source))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Siblings{}, err
	}
	return s, nil
}

// SourceOf returns the source topic of a sibling, whatever the group, delay or kind of the sibling.
// It returns false for a topic that is no sibling by these templates, for a name that could belong
// to several sources, and if the templates are invalid.
func (n Naming) SourceOf(topic string) (string, bool) {
	ts, err := n.compile()
	if err != nil {
		return "", false
	}
	sources := ts.sources(topic)
	if len(sources) != 1 {
		return "", false
	}
	return sources[0], true
}

// TierOf returns the delay of a topic that is a retry tier of this source and group, configured or
// not. It returns false for any other topic, and for a delay that this package would format
// differently ("60s" for "1m").
func (n Naming) TierOf(topic, source, group string) (time.Duration, bool) {
	ts, err := n.compile()
	if err != nil {
		return 0, false
	}
	return ts.tierOf(topic, source, group)
}

// TiersAmong returns the topics that are retry tiers of this source and group, shortest delay
// first. Given all topics of a cluster it finds the tiers that a former configuration left behind.
func (n Naming) TiersAmong(topics []string, source, group string) []Tier {
	ts, err := n.compile()
	if err != nil {
		return nil
	}
	var tiers []Tier
	for _, topic := range topics {
		if d, ok := ts.tierOf(topic, source, group); ok {
			tiers = append(tiers, Tier{Delay: d, Topic: topic})
		}
	}
	slices.SortFunc(tiers, func(a, b Tier) int { return cmp.Compare(a.Delay, b.Delay) })
	return slices.Compact(tiers)
}

// FormatDelay formats a delay as in a tier's name: Go's form without zero units, so "5s", "5m",
// "1h30m", "1.5s".
func FormatDelay(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if i := strings.Index(s, "h0m"); i >= 0 {
		s = s[:i+1] + s[i+len("h0m"):]
	}
	return s
}

// ParseDelay parses the output of [FormatDelay]. It returns false for all else: forms that are not
// the shortest ("60s"), and delays that are not positive or not whole milliseconds.
func ParseDelay(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || delayProblem(d) != nil || FormatDelay(d) != s {
		return 0, false
	}
	return d, true
}

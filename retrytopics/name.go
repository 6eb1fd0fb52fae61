package retrytopics

import "time"

// Kind says what a sibling topic is for.
type Kind uint8

const (
	// KindRetry is a tier, where records wait for their next attempt.
	KindRetry Kind = iota + 1
	// KindDLQ holds dead letters.
	KindDLQ
	// KindLedger holds what became of them.
	KindLedger
)

// String returns "retry", "dlq" or "ledger", and "" for the zero value.
func (k Kind) String() string {
	switch k {
	case KindRetry:
		return "retry"
	case KindDLQ:
		return "dlq"
	case KindLedger:
		return "ledger"
	}
	return ""
}

// A Name is what the name of a sibling topic says.
type Name struct {
	Kind   Kind
	Source string
	// Group is empty where the template has no {group}.
	Group string
	// Delay is of a tier, zero for the others.
	Delay time.Duration
}

// Parse reads a topic's name backwards: what kind of sibling it is, and of which
// source. Like [Naming.SourceOf] it reports false for a topic that is no sibling
// by these templates, for one that can be read in more than one way, and where
// the templates are not valid.
func (n Naming) Parse(topic string) (Name, bool) {
	ts, err := n.compile()
	if err != nil {
		return Name{}, false
	}
	var found []Name
	for kind, t := range map[Kind]template{KindRetry: ts.retry, KindDLQ: ts.dlq, KindLedger: ts.ledger} {
		for r := range t.readings(topic) {
			found = append(found, Name{Kind: kind, Source: r.topic, Group: r.group, Delay: r.delay})
		}
	}
	if len(found) != 1 {
		return Name{}, false
	}
	return found[0], true
}

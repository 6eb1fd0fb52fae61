package retrytopics

import "time"

// Kind is the purpose of a sibling topic.
type Kind uint8

const (
	// KindRetry is a tier, where records wait for their next attempt.
	KindRetry Kind = iota + 1
	// KindDLQ holds dead letters.
	KindDLQ
	// KindLedger holds the outcomes of dead letters.
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

// A Name is the content of a sibling topic's name.
type Name struct {
	Kind   Kind
	Source string
	// Group is empty if the template has no {group}.
	Group string
	// Delay is the tier's; zero for other kinds.
	Delay time.Duration
}

// Parse derives the kind of a sibling and its source from a topic's name. Like [Naming.SourceOf] it
// returns false for a topic that is no sibling by these templates, for an ambiguous name, and if
// the templates are invalid. A name that fits [DefaultLedger] is a ledger's under every naming:
// "orders.dlq.ledger" fits "{topic}.dlq.{group}" too, and to take a ledger for a dead-letter topic
// may cost its entries.
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
	if source, ok := defaultLedgerOf(topic); ok && found[0].Kind != KindLedger {
		return Name{Kind: KindLedger, Source: source}, true
	}
	return found[0], true
}

// defaultLedgerOf returns the source of a topic that is named like a ledger by the default naming.
func defaultLedgerOf(topic string) (source string, ok bool) {
	for r := range defaultLedger.readings(topic) {
		return r.topic, true
	}
	return "", false
}

var defaultLedger = template{placeTopic, ".dlq.ledger"}

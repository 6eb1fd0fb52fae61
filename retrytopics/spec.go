package retrytopics

import "time"

// Mode says what [Ensure] may do.
type Mode uint8

const (
	// Create makes the siblings that are missing and grows those that have
	// fewer partitions than their source. It is the default.
	Create Mode = iota
	// Verify changes nothing: what is missing or too small is an error that
	// lists the commands to run.
	Verify
	// Off asks the cluster nothing and reports nothing.
	Off
)

// String returns the mode's name.
func (m Mode) String() string {
	switch m {
	case Create:
		return "create"
	case Verify:
		return "verify"
	case Off:
		return "off"
	}
	return "unknown"
}

// Spec says how siblings are provisioned. The zero value creates what is
// missing, with the defaults.
type Spec struct {
	// Mode is Create, Verify or Off. Default Create.
	Mode Mode
	// TierRetention is how long a tier keeps a record, from its writing. It
	// must be longer than every delay by a margin, or a record would expire
	// before it is due. Zero means the longer of 7 days and twice the delay,
	// tier by tier.
	TierRetention time.Duration
	// DLQRetention is how long a dead letter is kept. Zero means 14 days. The
	// ledger is kept 7 days longer.
	DLQRetention time.Duration
	// Configs are topic configs for every sibling that is created, and what
	// existing ones are compared with. They override what Ensure chooses.
	// Those that would lose records are refused.
	Configs map[string]string
}

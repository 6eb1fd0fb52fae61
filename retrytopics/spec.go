package retrytopics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Mode is what [Ensure] may do.
type Mode uint8

const (
	// Create creates missing siblings, and grows siblings with fewer partitions than their source.
	// It is the default.
	Create Mode = iota
	// Verify changes nothing: missing or too small siblings are an error that lists the commands to
	// run.
	Verify
	// Off sends no request and reports nothing. It is for operators who provision the siblings
	// themselves, and grant the consumer no permission to describe them.
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
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Spec describes how siblings are provisioned. The zero value creates missing siblings with the
// defaults.
type Spec struct {
	// Mode is [Create], [Verify] or [Off]. Default Create.
	Mode Mode
	// TierRetention is how long a tier keeps a record, counted from its writing. It must be at
	// least twice the longest delay, and an hour more than that delay. Otherwise a consumer that is
	// down for a while would lose records before they are due. Zero means the longer of 7 days and
	// twice the delay, tier by tier; negative means for ever.
	TierRetention time.Duration
	// DLQRetention is how long a dead letter is kept. The ledger's records, also its notes of
	// discarded records, are kept 7 days longer. Zero means 14 days; negative means for ever.
	DLQRetention time.Duration
	// Configs are topic configs for every sibling. New siblings get them in place of Ensure's own
	// values, and existing siblings are compared with them. A config whose value is nil is left
	// out, of both, since the cluster's policy refuses it, say. cleanup.policy and retention.bytes
	// are refused, since they lose records. So is retention.ms: TierRetention and DLQRetention set
	// it. Default none.
	Configs map[string]*string
}

const day = 24 * time.Hour

const (
	defaultTierRetention = 7 * day
	defaultDLQRetention  = 14 * day
	// leastTierSlack is how long a consumer of a tier may be down at least.
	leastTierSlack = time.Hour

	defaultSegment = day
	brokerSegment  = 7 * day // of a topic without segment.ms, by Kafka's default
	// ledgerMargin is how much longer than the dead letters the ledger is kept:
	// an entry that expired before its letter would open the letter again.
	ledgerMargin = 7 * day
	// leastLedgerMargin is added to the dead letters' segment, since a broker deletes whole
	// segments, and some time after they expired.
	leastLedgerMargin = day

	// headroom is how much larger than the source's batches a sibling's batches may be. Siding's
	// headers take 9 KiB at most; the remainder is for copies that compress worse than the
	// producer's batches.
	headroom        = 64 << 10
	maxMessageLimit = 1<<31 - 1
	// With this many replicas writes continue after the loss of one, so two must acknowledge each
	// write.
	replicasForTwoInSync = 3
)

// RetentionOf returns how long a tier of this delay keeps a record, by the spec. No record in it
// can be due later than that after its writing. Negative means for ever.
func (s Spec) RetentionOf(delay time.Duration) time.Duration {
	if s.TierRetention != 0 {
		return s.TierRetention
	}
	return max(defaultTierRetention, 2*delay)
}

// leastTierRetention returns the shortest retention that a tier may have. A record is due up to its
// delay and jitter after its writing; the remaining time is how long its consumer may be down.
func leastTierRetention(delay time.Duration) time.Duration {
	return max(2*delay, delay+leastTierSlack)
}

func (s Spec) dlqRetention() time.Duration {
	if s.DLQRetention != 0 {
		return s.DLQRetention
	}
	return defaultDLQRetention
}

// Validate reports every problem of the spec for these siblings in one error. It sends no request.
// Ensure calls it too.
func (s Spec) Validate(siblings ...Siblings) error {
	var errs []error
	if s.Mode > Off {
		errs = append(errs, fmt.Errorf("spec: unknown mode %d", s.Mode))
	}
	for _, retention := range []struct {
		field string
		d     time.Duration
	}{{"TierRetention", s.TierRetention}, {"DLQRetention", s.DLQRetention}} {
		if retention.d > 0 && retention.d < time.Millisecond {
			errs = append(errs, fmt.Errorf("spec: %s %s is shorter than a millisecond", retention.field, retention.d))
		}
	}
	if s.TierRetention > 0 {
		for _, sib := range siblings {
			for _, t := range sib.Tiers {
				if least := leastTierRetention(t.Delay); s.TierRetention < least {
					errs = append(errs, fmt.Errorf("spec: TierRetention %s is too short for %q: records would expire before they are due, it needs %s at least",
						s.TierRetention, t.Topic, least))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Configs)) {
		switch name {
		case "":
			errs = append(errs, errors.New("spec: Configs has an empty name"))
		case cleanupPolicy:
			errs = append(errs, fmt.Errorf("spec: Configs cannot set %s: compaction deletes records that share a key", name))
		case retentionBytes:
			errs = append(errs, fmt.Errorf("spec: Configs cannot set %s: a limit by size deletes records before they are due", name))
		case retentionMS:
			errs = append(errs, fmt.Errorf("spec: Configs cannot set %s: use TierRetention and DLQRetention", name))
		}
	}
	return errors.Join(errs...)
}

package retrytopics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compare reports how an existing sibling differs from the wanted one, except in its number of
// partitions. For a setting with a lower bound more is no difference; neither is a config that the
// broker hides. Differences that lose records are refusals.
func (w wanted) compare(have *topic, dlq *topic) (differences []Difference, refusals []error) {
	if have.replicas < w.replicas {
		differences = append(differences, Difference{
			Topic: w.topic, Setting: replicationFactor,
			Want: strconv.Itoa(int(w.replicas)), Have: strconv.Itoa(int(have.replicas)),
		})
	}
	for _, config := range slices.Sorted(maps.Keys(w.configs)) {
		got, ok := have.configs[config]
		if !ok {
			continue
		}
		want := w.configs[config]
		if config == retentionMS && w.kind == kindLedger {
			want = w.ledgerRetention(want, dlq)
		}
		if satisfies(config, want, got) {
			continue
		}
		d := Difference{Topic: w.topic, Setting: config, Want: want, Have: got}
		if why := w.loses(config, got); why != "" {
			refusals = append(refusals, fmt.Errorf("topic %q has %s=%s: %s; run\n%s", w.topic, config, got, why, d.Command()))
			continue
		}
		differences = append(differences, d)
	}
	return differences, refusals
}

// satisfies reports whether a config's value is as good as the wanted one.
func satisfies(config, want, got string) bool {
	if want == got {
		return true
	}
	switch config {
	case cleanupPolicy:
		return slices.Equal(policies(want), policies(got))
	case uncleanElection, timestampType:
		return strings.EqualFold(want, got)
	case minISR, maxMessage:
		w, err1 := strconv.ParseInt(want, 10, 64)
		g, err2 := strconv.ParseInt(got, 10, 64)
		return err1 == nil && err2 == nil && g >= w
	case retentionMS:
		return retained(got) >= retained(want)
	}
	return false
}

// loses returns why a differing value would lose records, or the empty string.
func (w wanted) loses(config, got string) string {
	switch {
	case config == retentionBytes:
		return "a limit by size deletes records whatever their age"
	case config == cleanupPolicy && w.kind != kindLedger && slices.Contains(policies(got), "compact"):
		return "compaction deletes records that share a key"
	case config == retentionMS && w.kind == kindTier && retained(got) < leastTierRetention(w.delay).Milliseconds():
		return fmt.Sprintf("with a delay of %s records would expire before they are due, it needs %s at least", w.delay, leastTierRetention(w.delay))
	}
	return ""
}

// ledgerRetention raises the wanted retention of the ledger to the need of the existing dead-letter
// topic: an entry must outlive its letter.
func (w wanted) ledgerRetention(want string, dlq *topic) string {
	if dlq == nil || dlq.configs == nil {
		return want
	}
	kept, ok := dlq.configs[retentionMS]
	if !ok {
		return want
	}
	if retained(kept) == math.MaxInt64 {
		return "-1"
	}
	segment, ok := dlq.number(segmentMS)
	if !ok {
		segment = defaultSegment.Milliseconds()
	}
	// The sum is clamped, since a segment may be set to the end of time.
	longest := int64(math.MaxInt64) - leastLedgerMargin.Milliseconds() - retained(kept)
	need := retained(kept) + min(segment, longest) + leastLedgerMargin.Milliseconds()
	if retained(want) >= need {
		return want
	}
	return strconv.FormatInt(need, 10)
}

// retained reads retention.ms: milliseconds, with the largest number for ever. An unreadable value
// counts as zero, so that it is reported as a difference.
func retained(ms string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(ms), 10, 64)
	switch {
	case err != nil:
		return 0
	case n < 0:
		return math.MaxInt64
	}
	return n
}

func policies(s string) []string {
	var ps []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			ps = append(ps, p)
		}
	}
	slices.Sort(ps)
	return ps
}

// humanMS formats milliseconds as a duration.
func humanMS(ms string) string {
	n, err := strconv.ParseInt(ms, 10, 64)
	switch {
	case err != nil || n > math.MaxInt64/int64(time.Millisecond):
		return ms
	case n < 0:
		return "for ever"
	}
	return FormatDelay(time.Duration(n) * time.Millisecond)
}

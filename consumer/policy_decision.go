package consumer

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// decision says what happens to a failed record.
type decision struct {
	tier   retrytopics.Tier // where the record waits, unless final
	due    time.Time
	final  bool // the record will not be tried again
	how    Disposition
	reason headers.Reason
}

const classUnroutable = "unroutable"

// asked is the minimum wait that a failure asks for, capped by the policy.
func (p *Policy) asked(r classify.Result) time.Duration {
	return min(r.RetryAfter, max(p.MaxRetryAfter, 0))
}

// maxAttempts returns the bound of a record's deliveries: that of the run that redrove the record,
// else the policy's. A made-up bound above both ends, too.
func (p *Policy) maxAttempts(m *headers.Meta) int {
	if n := m.Redrive.MaxAttempts; n > 0 {
		return min(n, max(p.MaxAttempts, headers.MaxRedriveAttempts))
	}
	return p.MaxAttempts
}

// retriedSince returns when the retries of a failed record began: at its first failure, or at its
// last redrive.
func retriedSince(m *headers.Meta) time.Time {
	if !m.Redrive.At.IsZero() {
		return m.Redrive.At
	}
	return m.FirstFailedAt
}

// wholeMillis rounds a due time up to the milliseconds of its header; rounded down, it would be
// early.
func wholeMillis(t time.Time) time.Time {
	return time.UnixMilli(t.Add(time.Millisecond - 1).UnixMilli())
}

// next returns the tier for a record that failed on from, which is zero for the source: the first
// later tier with a delay of at least atLeast, else the last tier. It returns the zero Tier if
// there are no tiers.
//
// If from is no longer configured, the tier of the same delay takes its place (only the name
// changed, with the group's). Without such a tier, the next wait is at least as long as from's.
func next(s retrytopics.Siblings, from retrytopics.Tier, atLeast time.Duration) retrytopics.Tier {
	if len(s.Tiers) == 0 {
		return retrytopics.Tier{}
	}
	behind := slices.IndexFunc(s.Tiers, func(t retrytopics.Tier) bool { return t.Topic == from.Topic || t.Delay == from.Delay }) + 1
	if behind == 0 {
		atLeast = max(from.Delay, atLeast)
	}
	for _, t := range s.Tiers[behind:] {
		if t.Delay >= atLeast {
			return t
		}
	}
	return s.Tiers[len(s.Tiers)-1]
}

// spread returns a random share of a wait, at most jitter of it, in whole milliseconds.
func spread(jitter float64, wait time.Duration) time.Duration {
	most := share(jitter, wait).Milliseconds()
	if most <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(most+1)) * time.Millisecond
}

// terminalReason returns the most specific reason of a terminal failure.
func terminalReason(r classify.Result) headers.Reason {
	switch {
	case r.Class == classCrashed || r.Class == classCrashedDecoding:
		return headers.ReasonCrashLoop
	case r.Class == classUnroutable:
		return headers.ReasonUnroutable
	case r.Kind == classify.KindPanic:
		return headers.ReasonPanic
	case r.Kind == classify.KindUnsupportedVersion:
		return headers.ReasonUnsupportedVersion
	case r.Kind == classify.KindDecode:
		return headers.ReasonDecode
	}
	return headers.ReasonTerminal
}

// decide returns what the policy does with a failed record. m counts its deliveries, this one
// included. from is the tier that it failed on, or zero for the source. rested is the time
// that does not count for MaxAge. A failure that is free is no attempt: the record waits in from
// again, or in the first tier.
func (p *Policy) decide(s retrytopics.Siblings, from retrytopics.Tier, m *headers.Meta, now time.Time, rested time.Duration, free bool, r classify.Result) decision {
	switch {
	case r.Verdict == classify.VerdictDiscard:
		return decision{final: true, how: Discard, reason: headers.ReasonTerminal}
	case r.Verdict != classify.VerdictRetry:
		return decision{final: true, how: p.OnTerminal, reason: terminalReason(r)}
	case p.MaxAge > 0 && now.Sub(retriedSince(m))-rested >= p.MaxAge:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExpired}
	case !free && m.Attempts >= p.maxAttempts(m) || len(s.Tiers) == 0:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExhausted}
	}
	asked := p.asked(r)
	tier := next(s, from, asked)
	if free {
		tier = next(s, retrytopics.Tier{}, max(from.Delay, asked))
	}
	wait := max(tier.Delay, asked)
	return decision{tier: tier, due: wholeMillis(now.Add(plus(wait, spread(p.Jitter, wait), 1)))}
}

package consumer

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// decision is what becomes of a record that failed.
type decision struct {
	tier   retrytopics.Tier // where it waits, unless it goes to rest
	due    time.Time
	final  bool // it will not be tried again
	how    Disposition
	reason headers.Reason
}

// asked is the least wait that a failure asks for, as far as the policy lets it.
func (p *Policy) asked(r classify.Result) time.Duration {
	return min(r.RetryAfter, max(p.MaxRetryAfter, 0))
}

// wholeMillis rounds a due time up to what its header can say: cut, it would be early.
func wholeMillis(t time.Time) time.Time {
	return time.UnixMilli(t.Add(time.Millisecond - 1).UnixMilli())
}

// next is the tier that a record goes to when it failed on from; that is zero for the source. It is
// the first tier behind from that is at least atLeast long, or the last tier, from which a record
// goes to the last again; the zero Tier where there is none. A tier that is no longer configured
// stands for the tier of the same delay (its name changed with the group's), or leads to the first
// that is no shorter: the next wait is no shorter than the last one.
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

// spread is a random share of a wait, at most jitter of it, in whole milliseconds.
func spread(jitter float64, wait time.Duration) time.Duration {
	most := int64(jitter * float64(wait.Milliseconds()))
	if most <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(most+1)) * time.Millisecond
}

// terminalReason is the most specific reason that a terminal failure tells.
func terminalReason(r classify.Result) headers.Reason {
	switch {
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

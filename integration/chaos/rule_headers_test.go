package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// A crash letter's failure is found out by a later member, however late, and before it is written.
// Any other failure is within a minute of its run's end.
func TestHeaders_TimeOfTheFailure(t *testing.T) {
	t.Parallel()
	at := func(after time.Duration) time.Time { return time.Unix(100, 0).Add(after) }
	for name, test := range map[string]struct {
		reason string
		ends   bool
		failed time.Duration
		ok     bool
		does   act
	}{
		"a death found out late":             {reasonCrashLoop, false, 5 * time.Minute, true, actKill},
		"a death found out before it":        {reasonCrashLoop, false, -time.Second, false, actKill},
		"one that had not begun":             {reasonCrashLoop, false, -time.Second, true, actPass},
		"a death found out after its letter": {reasonCrashLoop, false, 7 * time.Minute, false, actKill},
		"a failure at its end":               {"terminal", true, time.Second, true, actPass},
		"a failure before its end":           {"terminal", true, 0, false, actPass},
		"a failure long after its end":       {"terminal", true, 2 * time.Minute, false, actPass},
		"a failure of a run without an end":  {"terminal", false, time.Second, false, actPass},
	} {
		x := &run{attempt: 1, start: at(0).UnixNano()}
		if test.ends {
			x.end = at(time.Second).UnixNano()
		}
		r := &record{runs: []*run{x}, origin: &kgo.Record{}, script: script{act: test.does}}
		c := &copied{rec: &kgo.Record{Timestamp: at(6 * time.Minute)}, meta: headers.Meta{Attempts: 1, Reason: headers.Reason(test.reason), FailedAt: at(test.failed)}}
		if got := !slices.Contains(untrue(r, c, ""), "the time of the failure"); got != test.ok {
			t.Errorf("%s: it is true: %v, want %v", name, got, test.ok)
		}
	}
}

package check

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
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
		does   trace.Act
	}{
		"a death found out late":             {trace.ReasonCrashLoop, false, 5 * time.Minute, true, trace.ActKill},
		"a death found out before it":        {trace.ReasonCrashLoop, false, -time.Second, false, trace.ActKill},
		"one that had not begun":             {trace.ReasonCrashLoop, false, -time.Second, true, trace.ActPass},
		"a death found out after its letter": {trace.ReasonCrashLoop, false, 7 * time.Minute, false, trace.ActKill},
		"a failure at its end":               {"terminal", true, time.Second, true, trace.ActPass},
		"a failure before its end":           {"terminal", true, 0, false, trace.ActPass},
		"a failure long after its end":       {"terminal", true, 2 * time.Minute, false, trace.ActPass},
		"a failure of a run without an end":  {"terminal", false, time.Second, false, trace.ActPass},
	} {
		x := &trace.Run{Attempt: 1, Start: at(0).UnixNano()}
		if test.ends {
			x.End = at(time.Second).UnixNano()
		}
		r := &record{runs: []*trace.Run{x}, origin: &kgo.Record{}, script: trace.Script{Act: test.does}}
		c := &copied{rec: &kgo.Record{Timestamp: at(6 * time.Minute)}, meta: headers.Meta{Attempts: 1, Reason: headers.Reason(test.reason), FailedAt: at(test.failed)}}
		if got := !slices.Contains(untrue(r, c, ""), "the time of the failure"); got != test.ok {
			t.Errorf("%s: it is true: %v, want %v", name, got, test.ok)
		}
	}
}

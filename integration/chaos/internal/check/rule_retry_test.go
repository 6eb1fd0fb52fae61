package check

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A record that was taken for one that kills has no further attempts. Any other one has those of
// its script.
func TestAttempts_EndWhereARecordIsCondemned(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	for _, test := range []struct {
		name      string
		suspended [][2]int64
		ran       int // attempts
		want      int
	}{
		{"its process stood while it ran alone", [][2]int64{{10 * second, 20 * second}}, 1, 0},
		{"no reason", nil, 1, 2}, // the attempt, and the letter
		{"it ran on nevertheless", [][2]int64{{10 * second, 20 * second}}, 3, 1},
	} {
		r := &record{id: 7, script: trace.Script{ID: 7, Act: trace.ActHang, Times: 1, Class: "db.busy"}, origin: &kgo.Record{Topic: "orders"}}
		for n := range test.ran {
			at := int64(10+n)*second + 1
			r.runs = append(r.runs, &trace.Run{Member: "a", Attempt: n + 1, Start: at, End: at + second, Verdict: trace.VerdictFailed})
		}
		letter := headers.Meta{Attempts: 1, Reason: headers.Reason(trace.ReasonCrashLoop), Class: "crash.handler"}
		r.letters = []*copied{{rec: &kgo.Record{Topic: "orders.dlq"}, meta: letter, of: r}}
		s := &served{records: map[int64]*record{7: r}}
		s.Policy.MaxAttempts = 4
		ev := &evidence{services: []*served{s}, members: map[string]*trace.Member{"a": {Suspended: test.suspended}}}
		wants(t, test.name, find(attemptsRule, ev), test.want)
	}
}

package check

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// An outcome names the copy of its letter, or a later one that the copy's failure led to. An entry
// that the letter was redriven names the copy.
func TestLedger_NamesACopyOfTheLetter(t *testing.T) {
	t.Parallel()
	from := headers.Position{Topic: "orders.dlq", Offset: 3}
	copyAt := func(offset int64, attempts int, id string) *copied {
		return &copied{rec: &kgo.Record{Topic: "orders.retry.5s", Offset: offset}, meta: headers.Meta{Attempts: attempts, Redrive: headers.Redrive{ID: id, From: from}}}
	}
	for name, test := range map[string]struct {
		state dlq.State
		at    int64
		want  int
	}{
		"sent":                         {dlq.Redriven, 10, 0},
		"sent to a later copy":         {dlq.Redriven, 20, 1},
		"passed at the copy":           {dlq.Succeeded, 10, 0},
		"passed at a later copy":       {dlq.Succeeded, 20, 0},
		"passed at another run's copy": {dlq.Succeeded, 30, 1},
		"passed at nothing":            {dlq.Succeeded, 40, 1},
	} {
		sent := copyAt(10, 0, "r1")
		r := &record{id: 7, origin: &kgo.Record{Topic: "orders"}, copies: []*copied{sent, copyAt(20, 1, "r1"), copyAt(30, 0, "r2")}}
		sent.of = r
		s := &served{redriven: []*copied{sent}, entries: map[trace.TP]map[int64]dlq.Entry{{Topic: "orders.dlq", Partition: 0}: {
			3: {State: test.state, Target: headers.Position{Topic: "orders.retry.5s", Offset: test.at}},
		}}}
		wants(t, name, find(ledgerRule, &evidence{services: []*served{s}}), test.want)
	}
}

package resolved

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

func TestText_SaysHowByWhomAndWhatToDo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		e    dlq.Entry
		want string
	}{
		{dlq.Entry{State: dlq.Discarded, By: "ada", Why: "sold out"}, "ada discarded it at 2026-11-21T03:00:00Z: sold out; reopen it first"},
		{dlq.Entry{State: dlq.Discarded, Run: "r1", By: "group billing", Why: "card 4111"}, "its handler discarded it in run r1, at 2026-11-21T03:00:00Z; reopen it first"},
		{dlq.Entry{State: dlq.Compensated, By: "ada", Why: "refunded"}, "ada recorded at 2026-11-21T03:00:00Z that it is compensated: refunded; reopen it first"},
		{dlq.Entry{State: dlq.Reopened, By: "ben"}, "it is open: ben reopened it at 2026-11-21T03:00:00Z"},
		{dlq.Entry{State: dlq.Redriven, Run: "r1", By: "ada"}, "run r1 of ada sent it at 2026-11-21T03:00:00Z, and its outcome is not known yet: the run's status"},
		{dlq.Entry{State: dlq.Succeeded, Run: "r1"}, "run r1 of somebody redrove it, and it succeeded, as recorded at 2026-11-21T03:00:00Z; to have it processed once more, export and import it"},
		{dlq.Entry{State: dlq.Failed, Run: "r1", By: "ada", Class: "tax"}, "run r1 of ada redrove it, and it failed again with tax, as recorded at 2026-11-21T03:00:00Z; that failure is another letter"},
		{dlq.Entry{State: dlq.Unfollowed, Run: "r1", By: "ada", Target: headers.Position{Topic: "audit", Offset: 7}}, "run r1 of ada sent it to audit/0/7 at 2026-11-21T03:00:00Z, where no outcome can be known; to send it once more, export"},
		{dlq.Entry{State: dlq.Duplicate, Target: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 40}}, "it is a copy of orders.dlq/3/40; choose that letter"},
		{dlq.Entry{State: dlq.Duplicate}, "it is a copy of another letter"},
		{dlq.Entry{State: dlq.Unknown}, "it is open"},
		{dlq.Entry{}, "it is open"},
	} {
		c.e.At = at
		older := &dlq.LedgerRecord{Entry: dlq.Entry{State: dlq.Unknown, By: "nobody"}}
		got := Text(&dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Partition: 3, Offset: 41}, State: c.e.State}, []*dlq.LedgerRecord{older, {Entry: c.e}})
		if !strings.HasPrefix(got, "letter orders.dlq/3/41: "+c.want) {
			t.Errorf("%s: %q, want %q", c.e.State, got, c.want)
		}
	}
}

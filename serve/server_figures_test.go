package serve_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// The clock of the machine on which an operator began a run was fast by ten minutes. The next run
// was the last one all the same: it aborted, the metrics had the success of the one before, and no
// receiver was notified.
func TestServer_AFastClockHidesNoLaterRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := retriedAt(t, k)
		is.dies()
		is.serve(serve.Config{Refresh: soonSeen})
		is.knowsTheLetter()
		is.broken.Store(false)
		run := is.ends()
		is.within(time.Minute, "the first run succeeded", func() bool { return is.metric("siding_redrive_success_ratio", "") == "1" })
		is.dates(run.ID, 10*time.Minute)
		is.dies()
		is.knowsTheLetter()
		if run = is.ends(); run.State != "aborted" {
			t.Fatalf("the second run is %+v", run)
		}
		time.Sleep(20 * time.Second)
		if got := is.metric("siding_redrive_success_ratio", ""); got != "0" {
			t.Errorf("the success of the last run is %q, want 0", got)
		}
		if n := is.log.count("alert=redrive-fails severity=warn text=\"run " + run.ID + " of "); n != 1 {
			t.Errorf("the run aborted, and people were notified %d times, want once", n)
		}
	})
}

// dates moves the times of a run that ended, as those of a clock that is wrong.
func (is *station) dates(run string, wrong time.Duration) {
	is.t.Helper()
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", is.k.Opts()...)
	if err := l.Read(is.t.Context(), nil, nil); err != nil {
		is.t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(l.Runs()[run], &record); err != nil {
		is.t.Fatal(err)
	}
	for _, key := range []string{"startedAt", "at", "endedAt"} {
		at, err := time.Parse(time.RFC3339Nano, record[key].(string))
		if err != nil {
			is.t.Fatal(err)
		}
		record[key] = at.Add(wrong)
	}
	text, err := json.Marshal(record)
	if err != nil {
		is.t.Fatal(err)
	}
	is.k.Produce(dlq.RunRecord("orders.dlq.ledger", run, text))
	time.Sleep(20 * time.Second)
}

package operate

import (
	"log/slog"
	"testing"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// The texts of a run's end and of its notices may quote a letter. What the server hides, it hides
// there, too. So it does with the brokers' addresses, which such texts had.
func TestDesk_TextsOfRunsHideWhatIsHidden(t *testing.T) {
	t.Parallel()
	hidden, err := redact.Parse(nil, nil, []redact.Text{{Text: "hunter[0-9]"}})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{View: selection.View{Redact: hidden}, Log: slog.Default()})
	o := redrive.Outcome{Topic: "orders.dlq", ID: "x", State: redrive.Canary, Cause: "hunter2 failed", Why: "for hunter3"}
	l := &LiveRun{topic: o.Topic, id: o.ID, last: o, notices: []string{"skipped hunter4"}}
	d.Runner.live["orders.dlq/x"] = l
	is := runAs(d, &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: o.Topic}}, &o)
	if is.Cause != "[redacted] failed" || is.Why != "for [redacted]" || len(is.Notices) != 1 || is.Notices[0] != "skipped [redacted]" {
		t.Errorf("the run is %+v", is)
	}
	if l.notices[0] != "skipped hunter4" {
		t.Errorf("the run's own notice became %q", l.notices[0])
	}
	const broker, clean = "unable to dial: dial tcp 10.9.8.7:9092: connection refused", "unable to dial: dial tcp: connection refused"
	l.last.Cause, l.last.Waiting, l.notices = broker, broker, []string{broker}
	if is := runAs(d, &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: o.Topic}}, &l.last); is.Cause != clean || is.Waiting != clean || is.Notices[0] != clean {
		t.Errorf("the run is %+v", is)
	}
}

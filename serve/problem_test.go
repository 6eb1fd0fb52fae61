package serve

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// The text of an error, of a run's end and of its notices may quote a letter. What the server
// hides, it hides there, too. So it does with the brokers' addresses, which such texts had.
func TestServer_TextsOfErrorsAndRunsHideWhatIsHidden(t *testing.T) {
	t.Parallel()
	rules, err := (&Redact{Patterns: []string{"hunter[0-9]"}}).rules()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{parts: parts{redact: rules}, runner: &runner{live: map[string]*liveRun{}}}
	told, err := s.told(nil)(nil, "", problem(api.EditFailed, "the value hunter2 is no object"))
	if p, ok := told.(*huma.ErrorModel); err != nil || !ok || p.Detail != "the value [redacted] is no object" || p.Type != api.EditFailed.Type() {
		t.Errorf("the problem is %+v, %v", told, err)
	}
	o := redrive.Outcome{Topic: "orders.dlq", ID: "x", State: redrive.Canary, Cause: "hunter2 failed", Why: "for hunter3"}
	l := &liveRun{topic: o.Topic, id: o.ID, last: o, notices: []string{"skipped hunter4"}}
	s.runner.live["orders.dlq/x"] = l
	is := s.runAs(&watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: o.Topic}}, &o)
	if is.Cause != "[redacted] failed" || is.Why != "for [redacted]" || len(is.Notices) != 1 || is.Notices[0] != "skipped [redacted]" {
		t.Errorf("the run is %+v", is)
	}
	if l.notices[0] != "skipped hunter4" {
		t.Errorf("the run's own notice became %q", l.notices[0])
	}
	const broker, clean = "unable to dial: dial tcp 10.9.8.7:9092: connection refused", "unable to dial: dial tcp: connection refused"
	l.last.Cause, l.last.Waiting, l.notices = broker, broker, []string{broker}
	told, err = s.told(nil)(nil, "", problem(api.Kafka, "%s", broker))
	if p, ok := told.(*huma.ErrorModel); err != nil || !ok || p.Detail != clean {
		t.Errorf("the problem is %+v, %v", told, err)
	}
	if is := s.runAs(&watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: o.Topic}}, &l.last); is.Cause != clean || is.Waiting != clean || is.Notices[0] != clean {
		t.Errorf("the run is %+v", is)
	}
}

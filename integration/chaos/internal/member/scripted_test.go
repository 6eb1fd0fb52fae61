package member

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// The journal distinguishes failures of an outage from those of a partial one. A record that kills
// does so.
func TestScripted_LogsOutages(t *testing.T) {
	t.Parallel()
	for mode, want := range map[outage.Mode]trace.Verdict{outage.All: trace.VerdictOutage, outage.Tenants: trace.VerdictPart, outage.Flaps: trace.VerdictPart} {
		dir, down := t.TempDir(), new(outage.State)
		j, err := trace.OpenJournal(filepath.Join(dir, "a.journal"))
		if err != nil {
			t.Fatal(err)
		}
		if err := outage.Begin(trace.OutageFile(dir, "billing"), mode, 100); err != nil {
			t.Fatal(err)
		}
		down.Look(trace.OutageFile(dir, "billing"))
		for _, act := range []trace.Act{trace.ActPass, trace.ActKill} {
			r := &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{trace.Script{Act: act, Times: trace.Always}.Header()}}
			_ = scripted(nil, j, time.Second, down)(t.Context(), r)
		}
		is, err := trace.ReadJournal("a", filepath.Join(dir, "a.journal"))
		if err != nil || len(is.Runs) != 2 || is.Runs[0].Verdict != want || is.Runs[1].Verdict != trace.VerdictFailed {
			t.Errorf("%s: the journal has %v, %v", mode, is.Runs, err)
		}
	}
}

// The checker does not know what should follow when the team's handler fails, so a journal has to
// say that it did.
func TestScripted_LogsThatTheTeamsHandlerFailed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script trace.Script
		own    func() error
		want   trace.Verdict
		failed bool
	}{
		{"passes", trace.Script{Act: trace.ActPass}, func() error { return nil }, trace.VerdictPassed, false},
		{"fails", trace.Script{Act: trace.ActPass}, func() error { return classify.Retryable(errors.New("no such account")) }, trace.VerdictFailed, true},
		{"discards", trace.Script{Act: trace.ActPass}, func() error { return classify.Discard(errors.New("no such account")) }, trace.VerdictDiscard, true},
		{"panics", trace.Script{Act: trace.ActPass}, func() error { panic("no such account") }, trace.VerdictPanic, true},
		{"is not called", trace.Script{Act: trace.ActTerminal}, func() error { return errors.New("no such account") }, trace.VerdictTerminal, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "a.journal")
			j, err := trace.OpenJournal(name)
			if err != nil {
				t.Fatal(err)
			}
			own := func(context.Context, *kgo.Record) error { return test.own() }
			func() {
				defer func() { _ = recover() }() // siding would
				_ = scripted(own, j, time.Second, new(outage.State))(t.Context(), &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{test.script.Header()}})
			}()
			is, err := trace.ReadJournal("a", name)
			if err != nil || len(is.Runs) != 1 {
				t.Fatalf("%d runs, %v", len(is.Runs), err)
			}
			if r := is.Runs[0]; r.Verdict != test.want || r.Own != test.failed {
				t.Errorf("the journal says %s, own %v; want %s, %v", r.Verdict, r.Own, test.want, test.failed)
			}
		})
	}
}

// The metrics count a run whose time is over before the handler begins.
func TestScripted_LogsATimeoutBeforeTheHandler(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := trace.OpenJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(consumer.ErrHandlerTimeout)
	handler := scripted(nil, j, time.Second, new(outage.State))
	if err := handler(ctx, &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{trace.Script{Act: trace.ActPass}.Header()}}); !errors.Is(err, consumer.ErrHandlerTimeout) {
		t.Errorf("handler: %v", err)
	}
	is, err := trace.ReadJournal("a", name)
	if err != nil || len(is.Runs) != 1 || is.Runs[0].Verdict != trace.VerdictFailed || is.Runs[0].Own {
		t.Errorf("the journal has %v, %v", is.Runs, err)
	}
}

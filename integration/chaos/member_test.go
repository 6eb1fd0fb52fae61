package chaos

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
)

// The journal tells failures of an outage from those of a partial one. A record that kills does so.
func TestScripted_TellsOfOutages(t *testing.T) {
	t.Parallel()
	for mode, want := range map[outage.Mode]verdict{outage.All: verdictOutage, outage.Tenants: verdictPart, outage.Flaps: verdictPart} {
		dir, down := t.TempDir(), new(outage.State)
		j, err := openJournal(filepath.Join(dir, "a.journal"))
		if err != nil {
			t.Fatal(err)
		}
		if err := outage.Begin(outageFile(dir, "billing"), mode, 100); err != nil {
			t.Fatal(err)
		}
		down.Look(outageFile(dir, "billing"))
		for _, act := range []act{actPass, actKill} {
			r := &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{script{act: act, times: always}.header()}}
			_ = scripted(nil, j, time.Second, down)(t.Context(), r)
		}
		is, err := readJournal("a", filepath.Join(dir, "a.journal"))
		if err != nil || len(is.runs) != 2 || is.runs[0].verdict != want || is.runs[1].verdict != verdictFailed {
			t.Errorf("%s: the journal tells %v, %v", mode, is.runs, err)
		}
	}
}

// The checker does not know what should follow when the team's handler fails, so a journal has to
// tell that it did.
func TestScripted_TellsWhenTheTeamsHandlerFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script script
		own    func() error
		want   verdict
		failed bool
	}{
		{"passes", script{act: actPass}, func() error { return nil }, verdictPassed, false},
		{"fails", script{act: actPass}, func() error { return classify.Retryable(errors.New("no such account")) }, verdictFailed, true},
		{"discards", script{act: actPass}, func() error { return classify.Discard(errors.New("no such account")) }, verdictDiscard, true},
		{"panics", script{act: actPass}, func() error { panic("no such account") }, verdictPanic, true},
		{"is not called", script{act: actTerminal}, func() error { return errors.New("no such account") }, verdictTerminal, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "a.journal")
			j, err := openJournal(name)
			if err != nil {
				t.Fatal(err)
			}
			own := func(context.Context, *kgo.Record) error { return test.own() }
			func() {
				defer func() { _ = recover() }() // siding would
				_ = scripted(own, j, time.Second, new(outage.State))(t.Context(), &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{test.script.header()}})
			}()
			is, err := readJournal("a", name)
			if err != nil || len(is.runs) != 1 {
				t.Fatalf("%d runs, %v", len(is.runs), err)
			}
			if r := is.runs[0]; r.verdict != test.want || r.own != test.failed {
				t.Errorf("the journal says %s, own %v; want %s, %v", r.verdict, r.own, test.want, test.failed)
			}
		})
	}
}

// The metrics count a run whose time is over before the handler begins.
func TestScripted_TellsOfATimeoutBeforeTheHandler(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(consumer.ErrHandlerTimeout)
	handler := scripted(nil, j, time.Second, new(outage.State))
	if err := handler(ctx, &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{script{act: actPass}.header()}}); !errors.Is(err, consumer.ErrHandlerTimeout) {
		t.Errorf("handler: %v", err)
	}
	is, err := readJournal("a", name)
	if err != nil || len(is.runs) != 1 || is.runs[0].verdict != verdictFailed || is.runs[0].own {
		t.Errorf("the journal tells %v, %v", is.runs, err)
	}
}

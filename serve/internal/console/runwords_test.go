package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
)

// Of letters that a run did not send its page said that they are open, as they were: also of those
// that retention had deleted, and of those that were discarded.
func TestNotSent_SaysWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]api.Counts{
		"": {Selected: 5, Sent: 5},
		"Of the letters that were not sent, 5 stayed open.":                                                  {Selected: 9, Sent: 4},
		"Of the letters that were not sent, 5 expired before.":                                               {Selected: 9, Sent: 4, Skipped: map[string]int64{redrive.SkippedExpired: 5}},
		"Of the letters that were not sent, 2 expired before, 1 got an outcome otherwise and 2 stayed open.": {Selected: 9, Sent: 4, Skipped: map[string]int64{redrive.SkippedExpired: 2, redrive.SkippedResolved: 1, "edit failed": 1}},
	} {
		if says, left := notSent(&n); says != want || left != strings.Contains(want, "open") {
			t.Errorf("%q, and some are left: %v; want %q", says, left, want)
		}
	}
}

// The audit had who began a run, and neither who resumed nor who aborted it.
func TestActsOnRun_AreResumptionsAndAborts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	run := redrive.Outcome{
		State: redrive.Aborted, Owner: "ben on pod-2, process 1", Cause: "aborted by ben on pod-2, process 1: wrong letters", Ended: at.Add(time.Hour),
		Resumed: []redrive.Resumption{
			{At: at, Owner: "rule on call on pod-1, process 7"},
			{At: at, Owner: "ada on pod-1, process 8", Changed: []redrive.PaceChange{{Field: "rate", From: "50", To: "10"}, {Field: "ramp", From: "30s", To: "none"}}},
		},
	}
	want := []actOnRun{
		{"resumed a run", "rule on call", "pod-1, process 7", "", at},
		{"resumed a run with rate 10 instead of 50, ramp none instead of 30s", "ada", "pod-1, process 8", "", at},
		{"aborted a run", "ben", "pod-2, process 1", "wrong letters", at.Add(time.Hour)},
	}
	if got := actsOnRun(&run); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if run.Cause, run.Resumed = "letter a failed again", nil; len(actsOnRun(&run)) != 0 {
		t.Errorf("it aborted itself: %+v", actsOnRun(&run))
	}
}

// What a run has failed again is not only what is a dead letter again.
func TestRunPhrases_CountRetries(t *testing.T) {
	t.Parallel()
	n := redrive.Counts{Selected: 3, Sent: 3, Pending: 3, Retrying: 2}
	want := "3 of 3 sent · 0 succeeded · 2 failed again and will be retried · 1 pending"
	if got := runText(&redrive.Outcome{State: redrive.Aborted, Counts: n}); got != "aborted · "+want {
		t.Errorf("%q, want %q", got, want)
	}
	var says []string
	for _, p := range runPhrases(&api.Run{State: "aborted", Counts: api.Counts(n)}, time.Now()) {
		says = append(says, p.Text)
	}
	if got := strings.Join(says, " · "); got != "aborted · "+want {
		t.Errorf("%q, want %q", got, want)
	}
}

// When a run will be done is said only as far as it can be known.
func TestDoneText_SaysWhen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ends := now.Add(20 * time.Second)
	counts := api.Counts{Selected: 1000, Sent: 300, Skipped: map[string]int64{"expired": 100}}
	pace := api.Pace{WindowMs: 30_000}
	for _, test := range []struct {
		run  api.Run
		rate float64
		want string
	}{
		{api.Run{State: "sending", Counts: counts, Pace: pace}, 10, "in about 1 min"},
		{api.Run{State: "sending", Counts: counts, Pace: pace}, 0.5, "in about 20 min"},
		{api.Run{State: "sending", Counts: counts, Pace: pace}, -1, "in about 30 s"},
		{api.Run{State: "sending", Counts: counts}, -1, "any moment"},
		{api.Run{State: "sending", Counts: counts}, 0, "unknown while nothing is sent"},
		{api.Run{State: "sending", Counts: api.Counts{Selected: 1 << 40}}, 1e-9, "in about 1,157 d"},
		{api.Run{State: "waiting", Counts: counts}, 10, "unknown while it waits"},
		{api.Run{State: "sending", Waiting: "lag", Counts: counts}, 10, "unknown while it waits"},
		{api.Run{State: "canary", Counts: counts}, 10, "unknown until the first outcome"},
		{api.Run{State: "watching", WindowEnds: &ends}, 0, "in about 20 s"},
		{api.Run{State: "watching"}, 0, "unknown yet"},
		{api.Run{State: "sending", Silent: true, Counts: counts}, 10, "not without a process"},
	} {
		if got := doneText(&test.run, test.rate, now); got != test.want {
			t.Errorf("%+v at %g/s is done %q, want %q", test.run, test.rate, got, test.want)
		}
	}
}

package check

import (
	"testing"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// An attempt whose process was suspended, or starved, until its time was over is one that failed;
// no other timeout is the record's fate.
func TestRecord_TimesOutInASuspendedProcess(t *testing.T) {
	t.Parallel()
	const decoding = classify.ClassDecode + "." + classify.ClassTimeout
	for _, test := range []struct {
		class string
		run   trace.Run
		want  trace.Ending
	}{
		{classify.ClassTimeout, trace.Run{Attempt: 1, Stalled: true}, trace.Ending{Place: trace.PlaceHandled, Attempts: 2, Class: classify.ClassTimeout}},
		{decoding, trace.Run{Attempt: 1, Stalled: true}, trace.Ending{Place: trace.PlaceHandled, Attempts: 2, Class: decoding}},
		{"db.busy", trace.Run{Attempt: 1, Stalled: true}, trace.Ending{Place: trace.PlaceHandled, Attempts: 1}},
		{classify.ClassTimeout, trace.Run{Attempt: 1}, trace.Ending{Place: trace.PlaceHandled, Attempts: 1}},
		{classify.ClassTimeout, trace.Run{Attempt: 2, Stalled: true}, trace.Ending{Place: trace.PlaceHandled, Attempts: 1}},
		{classify.ClassTimeout, trace.Run{Attempt: 1, Life: 1, Stalled: true}, trace.Ending{Place: trace.PlaceHandled, Attempts: 1}},
	} {
		timedOut := &copied{meta: headers.Meta{Attempts: 1, Class: test.class}}
		r := &record{script: trace.Script{Act: trace.ActPass}, runs: []*trace.Run{&test.run}, copies: []*copied{timedOut}}
		if got := r.ending(4, 0); got != test.want {
			t.Errorf("after %+v: %+v, want %+v", test.run, got, test.want)
		}
	}
}

// A record that was repeated may have two letters: of attempts that failed in an outage, and of
// ones that ended by its script.
func TestRecord_EndsOtherwiseWhereItWasRepeated(t *testing.T) {
	t.Parallel()
	letter := func(attempts int, class string, reason headers.Reason) *copied {
		return &copied{meta: headers.Meta{Attempts: attempts, Class: class, Reason: reason}}
	}
	r := &record{script: trace.Script{Act: trace.ActTerminal, Class: "x"}, copies: []*copied{letter(1, trace.ClassOutage, ""), letter(2, trace.ClassOutage, "")}}
	for _, test := range []struct {
		letter *copied
		fits   bool
	}{
		{letter(3, "x", "terminal"), true},
		{letter(2, "x", "terminal"), true},
		{letter(1, "x", "terminal"), true},
		{letter(4, "x", "terminal"), false},
		{letter(2, "y", "terminal"), false},
		{letter(2, trace.ClassOutage, "exhausted"), false},
	} {
		if fits := test.letter.ending() == r.endingOf(test.letter, 4); fits != test.fits {
			t.Errorf("a letter of %d attempts, class %s: fits %v", test.letter.meta.Attempts, test.letter.meta.Class, fits)
		}
	}
}

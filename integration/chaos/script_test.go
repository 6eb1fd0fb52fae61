package chaos

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// A script survives its header, or handlers would do something else than the checker expects.
func TestScript_SurvivesItsHeader(t *testing.T) {
	t.Parallel()
	for _, want := range []script{
		{id: 7, act: actRetry, times: 2, class: "db.busy", work: 1500 * time.Microsecond},
		{id: 0, act: actPass, class: "none"},
		{id: 1 << 40, act: actHang, times: always, class: "x"},
	} {
		got, ok := parseScript([]kgo.RecordHeader{{Key: "other"}, want.header()})
		if !ok || got != want {
			t.Errorf("%+v became %+v, %v", want, got, ok)
		}
	}
	for _, value := range []string{"", "1 pass 0 x", "a pass 0 x 0", "1 pass 0 x 0 0"} {
		if s, ok := parseScript([]kgo.RecordHeader{{Key: scriptHeader, Value: []byte(value)}}); ok {
			t.Errorf("%q is read as %+v", value, s)
		}
	}
}

func TestScript_SaysWhereItsRecordEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s    script
		life int
		want ending
	}{
		{script{act: actPass}, 0, ending{place: placeHandled, attempts: 1}},
		{script{act: actRetry, times: 3, class: "c"}, 0, ending{place: placeHandled, attempts: 4, class: "c"}},
		{script{act: actRetry, times: 4, class: "c"}, 0, ending{place: placeDead, attempts: 4, reason: "exhausted", class: "c"}},
		{script{act: actHang, times: always}, 0, ending{place: placeDead, attempts: 4, reason: "exhausted", class: "timeout"}},
		{script{act: actTerminal, class: "c"}, 0, ending{place: placeDead, attempts: 1, reason: "terminal", class: "c"}},
		{script{act: actRedriven, class: "c"}, 0, ending{place: placeDead, attempts: 1, reason: "terminal", class: "c"}},
		{script{act: actRedriven, class: "c"}, 1, ending{place: placeHandled, attempts: 1}},
		{script{act: actKill}, 0, ending{place: placeDead, attempts: 1, reason: "crash-loop", class: "crash.handler"}},
		{script{act: actDecode, times: 1, class: "c"}, 0, ending{place: placeDead, attempts: 2, reason: "crash-loop", class: "crash.decode"}},
	} {
		if got := test.s.ending(4, test.life, nil); got != test.want {
			t.Errorf("%+v, redriven %d times, ends as %+v, want %+v", test.s, test.life, got, test.want)
		}
	}
}

// An attempt whose process was suspended, or starved, until its time was over is one that failed;
// no other timeout is the record's fate.
func TestRecord_TimesOutInASuspendedProcess(t *testing.T) {
	t.Parallel()
	const decoding = classify.ClassDecode + "." + classify.ClassTimeout
	for _, test := range []struct {
		class string
		run   run
		want  ending
	}{
		{classify.ClassTimeout, run{attempt: 1, stalled: true}, ending{place: placeHandled, attempts: 2, class: classify.ClassTimeout}},
		{decoding, run{attempt: 1, stalled: true}, ending{place: placeHandled, attempts: 2, class: decoding}},
		{"db.busy", run{attempt: 1, stalled: true}, ending{place: placeHandled, attempts: 1}},
		{classify.ClassTimeout, run{attempt: 1}, ending{place: placeHandled, attempts: 1}},
		{classify.ClassTimeout, run{attempt: 2, stalled: true}, ending{place: placeHandled, attempts: 1}},
		{classify.ClassTimeout, run{attempt: 1, life: 1, stalled: true}, ending{place: placeHandled, attempts: 1}},
	} {
		timedOut := &copied{meta: headers.Meta{Attempts: 1, Class: test.class}}
		r := &record{script: script{act: actPass}, runs: []*run{&test.run}, copies: []*copied{timedOut}}
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
	r := &record{script: script{act: actTerminal, class: "x"}, copies: []*copied{letter(1, classOutage, ""), letter(2, classOutage, "")}}
	for _, test := range []struct {
		letter *copied
		fits   bool
	}{
		{letter(3, "x", "terminal"), true},
		{letter(2, "x", "terminal"), true},
		{letter(1, "x", "terminal"), true},
		{letter(4, "x", "terminal"), false},
		{letter(2, "y", "terminal"), false},
		{letter(2, classOutage, "exhausted"), false},
	} {
		if fits := test.letter.ending() == r.endingOf(test.letter, 4); fits != test.fits {
			t.Errorf("a letter of %d attempts, class %s: fits %v", test.letter.meta.Attempts, test.letter.meta.Class, fits)
		}
	}
}

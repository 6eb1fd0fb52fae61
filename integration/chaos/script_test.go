package chaos

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

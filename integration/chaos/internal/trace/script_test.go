package trace

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A script survives its header, or handlers would do something else than the checker expects.
func TestScript_SurvivesItsHeader(t *testing.T) {
	t.Parallel()
	for _, want := range []Script{
		{ID: 7, Act: ActRetry, Times: 2, Class: "db.busy", Work: 1500 * time.Microsecond},
		{ID: 0, Act: ActPass, Class: "none"},
		{ID: 1 << 40, Act: ActHang, Times: Always, Class: "x"},
	} {
		got, ok := ParseScript([]kgo.RecordHeader{{Key: "other"}, want.Header()})
		if !ok || got != want {
			t.Errorf("%+v became %+v, %v", want, got, ok)
		}
	}
	for _, value := range []string{"", "1 pass 0 x", "a pass 0 x 0", "1 pass 0 x 0 0"} {
		if s, ok := ParseScript([]kgo.RecordHeader{{Key: scriptHeader, Value: []byte(value)}}); ok {
			t.Errorf("%q is read as %+v", value, s)
		}
	}
}

func TestScript_SaysWhereItsRecordEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s    Script
		life int
		want Ending
	}{
		{Script{Act: ActPass}, 0, Ending{Place: PlaceHandled, Attempts: 1}},
		{Script{Act: ActRetry, Times: 3, Class: "c"}, 0, Ending{Place: PlaceHandled, Attempts: 4, Class: "c"}},
		{Script{Act: ActRetry, Times: 4, Class: "c"}, 0, Ending{Place: PlaceDead, Attempts: 4, Reason: "exhausted", Class: "c"}},
		{Script{Act: ActHang, Times: Always}, 0, Ending{Place: PlaceDead, Attempts: 4, Reason: "exhausted", Class: "timeout"}},
		{Script{Act: ActTerminal, Class: "c"}, 0, Ending{Place: PlaceDead, Attempts: 1, Reason: "terminal", Class: "c"}},
		{Script{Act: ActRedriven, Class: "c"}, 0, Ending{Place: PlaceDead, Attempts: 1, Reason: "terminal", Class: "c"}},
		{Script{Act: ActRedriven, Class: "c"}, 1, Ending{Place: PlaceHandled, Attempts: 1}},
		{Script{Act: ActKill}, 0, Ending{Place: PlaceDead, Attempts: 1, Reason: "crash-loop", Class: "crash.handler"}},
		{Script{Act: ActDecode, Times: 1, Class: "c"}, 0, Ending{Place: PlaceDead, Attempts: 2, Reason: "crash-loop", Class: "crash.decode"}},
	} {
		if got := test.s.Ending(4, test.life, nil); got != test.want {
			t.Errorf("%+v, redriven %d times, ends as %+v, want %+v", test.s, test.life, got, test.want)
		}
	}
}

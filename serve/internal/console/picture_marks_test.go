package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// A line stands where its time is in the picture. What began before or after has none, and of many
// the last ones count.
func TestPicture_MarksReleasesAndRuns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	w := window{from: now.Add(-time.Hour), by: time.Minute, n: 60}
	releases := []letterindex.Release{{Version: "2.3.0", First: now.Add(-61 * time.Minute)}, {Version: "2.3.1", First: now.Add(-time.Hour)}, {Version: "2.3.2", First: now.Add(-30*time.Minute - 30*time.Second)}, {Version: "3", First: now}}
	var p picture
	p.mark(w, releases, []redrive.Outcome{{ID: "r1", By: "anna", Started: now.Add(-time.Minute)}, {ID: "r0", By: "ben", Started: now.Add(-2 * time.Hour)}}, "/t", now)
	var got []string
	for _, m := range p.Marks {
		got = append(got, fmt.Sprint(m.Class, " ", m.X, " ", m.Text, " ", m.Link))
	}
	if want := "[release 0 first failure of 2.3.1  release 295 first failure of 2.3.2  run 590 run by anna /t/runs/r1]"; fmt.Sprint(got) != want {
		t.Errorf("the lines are %v, want %s", got, want)
	}
	releases = nil
	for i := range 3 * mostMarks {
		releases = append(releases, letterindex.Release{Version: fmt.Sprint(i), First: w.from.Add(time.Duration(i) * time.Minute)})
	}
	p.mark(w, releases, nil, "/t", now)
	if n := len(p.Marks); n != mostMarks || p.Marks[n-1].X != 10*(3*mostMarks-1) {
		t.Errorf("of %d releases %+v are marked", len(releases), p.Marks)
	}
}

func TestBeginningOf_SaysWhenWhereAndInWhichRelease(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		ago                    time.Duration
		version, host          string
		wantClock, wantBy, ref string
	}{
		{14 * time.Hour, "2.3.1", "billing-7f", "03:00:00 UTC", "by billing-7f, release 2.3.1", "/t/letters/1/7?class=a"},
		{20 * time.Hour, "2.3.1", "", "Nov 22 21:00:00 UTC", "release 2.3.1", "/t/letters/1/7?class=a"},
		{0, "", "billing-7f", "17:00:00 UTC", "by billing-7f", "/t/letters/1/7?class=a"},
		{0, "", "", "17:00:00 UTC", "", "/t/letters/1/7?class=a"},
	} {
		l := api.Letter{Partition: 1, Offset: 7, Version: test.version, FailedAt: now.Add(-test.ago)}
		b := beginningOf(&l, test.host, "/t", &Filter{Classes: []string{"a"}, Cursor: "x"}, now)
		if b.Clock != test.wantClock || b.Who != test.wantBy || b.Link != test.ref {
			t.Errorf("%+v: the beginning is %+v", test, b)
		}
	}
}

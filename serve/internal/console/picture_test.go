package console

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// A picture shows the newest failure, in times that a person can read.
func TestWindowOf_HasTheNewestFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 7, 30, 0, time.UTC)
	for _, test := range []struct {
		f            Filter
		newest, most time.Duration // ago; most is not known if it is 0
		by           time.Duration
		n            int
	}{
		{Filter{}, time.Minute, 0, 15 * time.Minute, 25},
		{Filter{}, time.Minute, time.Hour, time.Minute, 61},
		{Filter{}, time.Minute, 6 * time.Hour, 15 * time.Minute, 25},
		{Filter{}, time.Minute, 24 * time.Hour, time.Hour, 25},
		{Filter{}, 3 * time.Hour, 0, 15 * time.Minute, 25},
		{Filter{}, 7 * time.Hour, 0, time.Hour, 25},
		{Filter{}, 9 * 24 * time.Hour, 0, 24 * time.Hour, 31},
		{Filter{Since: now.Add(-time.Minute)}, 0, 0, time.Second, 60},
		{Filter{Since: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)}, 0, 0, time.Minute, 61},
		{Filter{Since: time.Unix(0, 0)}, 0, 0, 30 * 24 * time.Hour, mostTimes},
	} {
		var most time.Time
		if test.most > 0 {
			most = now.Add(-test.most)
		}
		w := windowOf(&test.f, now.Add(-test.newest), most, now)
		if w.by != test.by || w.n != test.n {
			t.Errorf("%+v, newest %v ago: %d times of %v, want %d of %v", test.f, test.newest, w.n, w.by, test.n, test.by)
		}
		until := now
		if !test.f.Until.IsZero() {
			until = test.f.Until
		}
		if w.from.Add(time.Duration(w.n) * w.by).Before(until) {
			t.Errorf("%+v: the window ends before %v", test.f, until)
		}
	}
}

// Bars are stacked to their numbers, within the picture, and each leads to its letters.
func TestNewPicture_StacksBars(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	w := window{from: now.Add(-3 * time.Hour), by: time.Hour, n: 3}
	p := newPicture(w, []letterindex.Series{{Class: "a", Counts: []int64{10, 0, 1}}, {Class: "", Counts: []int64{30, 0, 0}}}, now,
		func(since, until time.Time) string { return since.Format("15") + "-" + until.Format("15") }, func(class string) string { return class })
	if len(p.Bars) != 2 || p.Most != 40 || p.Total != 41 || len(p.Rows) != 2 {
		t.Fatalf("the picture is %+v", p)
	}
	if b := p.Bars[0]; len(b.Parts) != 2 || b.Parts[0].Height != 25 || b.Parts[1].Height != 75 || b.Parts[1].Y != 0 || b.Parts[0].Y != 75 || b.Link != "14-15" || b.Title != "Nov 23 14:00, 1 h: 10 a, 30 no class" {
		t.Errorf("the first bar is %+v", b)
	}
	if b := p.Bars[1]; len(b.Parts) != 1 || b.Parts[0].Height < 1 || b.Parts[0].X != 20 {
		t.Errorf("the last bar is %+v", b)
	}
	if p.Legend[0].Link != "a" || p.Legend[1].Name != noClass || p.Legend[1].Total != 30 || p.Rows[0].Total != 1 {
		t.Errorf("the legend is %+v, the rows are %+v", p.Legend, p.Rows)
	}
}

// A picture that reaches until now says so: the rest of its last time is still to come. The end of
// one that is over is a time.
func TestNewPicture_EndsNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 7, 30, 0, time.UTC)
	none := func(time.Time, time.Time) string { return "" }
	for _, test := range []struct {
		f    Filter
		want string // empty for now
	}{
		{Filter{}, ""},
		{Filter{Since: now.Add(-time.Hour)}, ""},
		{Filter{Since: now.Add(-3 * time.Hour), Until: now.Add(-2 * time.Hour)}, "2026-11-23T15:08:00Z"},
	} {
		w := windowOf(&test.f, now, time.Time{}, now)
		if got := newPicture(w, nil, now, none, nil).Until.ISO; got != test.want {
			t.Errorf("%+v: the picture ends %q, want %q", test.f, got, test.want)
		}
	}
}

// A letter of the future is in no picture of the past. It was said that none failed, beside that
// the topic grows.
func TestPicture_ShowsALetterOfTheFuture(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	for newest, want := range map[time.Time]string{now.Add(4 * time.Hour): "in 4 h", now.Add(-time.Minute): "", {}: ""} {
		w := windowOf(&Filter{}, newest, time.Time{}, now)
		if got := newPicture(w, nil, now, nil, nil).Ahead.Text; got != want {
			t.Errorf("the newest of %v is ahead by %q, want %q", newest, got, want)
		}
	}
}

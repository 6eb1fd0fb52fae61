package commitmark

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawLane(t *rapid.T) Lane {
	at := func(name string) time.Time {
		if n := rapid.Int64Range(0, 1<<37-1).Draw(t, name); n > 0 {
			return time.Unix(n, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		}
		return time.Time{}
	}
	return Lane{
		State: rapid.SampledFrom([]LaneState{0, Stopped, Missing, Denied, Refused, Unreadable, Stuck, Paused}).Draw(t, "state"),
		Since: at("since"), OpenSince: at("open"), Release: rapid.StringN(0, 12, 100).Draw(t, "release"),
	}
}

func TestLane_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLane(t)
		field := l.Field()
		if len(field) > MostLane || strings.ContainsFunc(field, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%d characters, or not plain ASCII: %q", len(field), field)
		}
		got := ParseLane(Mark+" 1 f=2s h=htro8w0.YQ"+field+" p=4fzyo82 b=AQ", 100)
		if l.State == 0 {
			l.Since = time.Time{}
		}
		seconds := func(at time.Time) time.Time {
			if at.IsZero() {
				return at
			}
			return time.Unix(at.Unix(), 0)
		}
		if got.State != l.State || got.Since != seconds(l.Since) || got.OpenSince != seconds(l.OpenSince) ||
			!strings.HasPrefix(l.Release, got.Release) || len(l.Release) <= mostRelease && got.Release != l.Release {
			t.Fatalf("got %v, want %v", got, l)
		}
		if l.Short() != got || got.Short() != got {
			t.Fatalf("got %v, by Short %v", got, l.Short())
		}
	})
}

func TestLane_WhatIsBrokenSaysNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "siding", "other l=s1", "siding 1 l=", "siding 1 l=x1", "siding 1 l=s", "siding 1 l=s-1", "siding 1 l=szzzzzzzzzzzz", "siding 1 t=", "siding 1 t=0",
		"siding 1 t=-1", "siding 1 v=", "siding 1 v=***", "siding 1 v=" + strings.Repeat("YWFh", 9), "siding 1 ll=s1", "siding 1 f=1s l=s1 t=1 v=YQ", "siding 1 l=s1 f=1s",
	} {
		if l := ParseLane(text, 100); l != (Lane{}) {
			t.Errorf("%q is read as %v", text, l)
		}
	}
	if l := ParseLane("siding 1 f=2s l=s2 l=d3 k=new t=5 v=YQ", 100); l != (Lane{Stopped, time.Unix(2, 0), time.Unix(5, 0), "a"}) {
		t.Errorf("got %v", l)
	}
}

func FuzzParseLane(f *testing.F) {
	f.Add("siding 1 f=2s l=shtro8w0 t=htro8w0 v=Mi4zLjE n=2 s=64 c=3d b=AQ", int64(100))
	f.Fuzz(func(t *testing.T, text string, offset int64) {
		l, s := ParseLane(text, offset), ParseSuspects(text, offset)
		if len(l.Field()) > MostLane || l.Short() != l {
			t.Fatalf("%q is read as %v", text, l)
		}
		if s.Deaths < 0 || s.Below < 0 || s.Deaths > 0 && s.Below <= offset {
			t.Fatalf("%q is read as %v", text, s)
		}
	})
}

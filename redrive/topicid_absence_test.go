package redrive

import (
	"testing"
	"time"
)

// A broker that lags does not know a topic for a moment, and polls in quick succession are no
// longer than that.
func TestIsGone_AfterAWhile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		every time.Duration
		there int // which look finds it; -1: none
		want  int // which look says that it is gone; -1: none
	}{
		"once a second":      {time.Second, -1, 10},
		"at once":            {time.Millisecond, -1, -1},
		"slowly":             {15 * time.Second, -1, 9},
		"found between":      {time.Second, 6, 17},
		"found late between": {time.Second, 9, -1},
	} {
		var absent []time.Time
		got := -1
		for i := range 19 {
			if absent = append(absent, at.Add(time.Duration(i)*c.every)); i == c.there {
				absent = nil
			}
			if isGone(absent) {
				got = i
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: look %d says that it is gone, want %d", name, got, c.want)
		}
	}
}

package main

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// If siding rejected the records the bench would measure how fast they are dead-lettered.
func TestParkedRecordsAreBelieved(t *testing.T) {
	t.Parallel()
	const delay = 90 * time.Second
	from := time.Now().Truncate(time.Millisecond).Add(delaysLead)
	l := lot{records: 150_000, rate: 2_500, from: from}
	origin := headers.Meta{Original: headers.Position{Topic: "src"}, Group: "g"}
	var before time.Time
	for _, i := range []int{0, 1, 77_777, l.records - 1} {
		failed := l.failedAt(i, delay)
		want := failedMeta(origin, 3, int64(i), failed, delay)
		got, err := headers.Parse(want.Append(nil))
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if err := got.CheckRetry(time.Now(), 7*24*time.Hour); err != nil {
			t.Errorf("record %d: %v", i, err)
		}
		// The headers keep their values, due times to the millisecond.
		if !got.NotBefore.Equal(want.NotBefore) || got.Attempts != 1 || got.Class != failingClass || got.Original.Offset != int64(i) {
			t.Errorf("record %d says %+v, want %+v", i, got, want)
		}
		due := from.Add(time.Duration(i) * time.Second / 2_500)
		if d := got.NotBefore.Sub(due); d <= -time.Millisecond || d > delay/10 {
			t.Errorf("record %d is due %v after its turn, want less than a tenth of the delay", i, d)
		}
		if failed.Before(before) {
			t.Errorf("record %d failed before the one before it", i)
		}
		before = failed
		// Beyond a full stay it would be parked a second time.
		if stay := from.Add(-delaysLead + delay + delay/10); got.NotBefore.After(stay) {
			t.Errorf("record %d is due %v after a full stay", i, got.NotBefore.Sub(stay))
		}
	}
}

package consumer

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The records of a unit that did not run return to the front of their feed.
func TestUnit_WhatDidNotRunGoesToTheFront(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var served []int64
		s, all := pooled(t, OrderPartition, 1, 1, func(u *unit) {
			served = append(served, u.recs[0].Offset)
			u.ran = 1
		})
		l := all[0]
		for first := int64(0); first < 30; first += 10 {
			var recs []*kgo.Record
			for at := range int64(10) {
				recs = append(recs, &kgo.Record{Offset: first + at})
			}
			l.source.batches.Push(batch{recs: recs, each: 1})
			l.source.addQueued(10, 10)
		}
		l.Wake()
		s.wg.Wait()
		if len(served) != 30 || !slices.IsSorted(served) {
			t.Errorf("served %v, want 0 … 29 in order", served)
		}
		if f := l.source; f.queued != 0 {
			t.Errorf("%d records are counted as queued after all ran", f.queued)
		}
	})
}

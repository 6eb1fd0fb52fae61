package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Under OrderPartition a record that has to run alone waits for those before it.
func TestSuspected_OneAloneOvertakesNone(t *testing.T) {
	t.Parallel()
	l := bench(t, 0)
	f := &l.source.feed
	f.window = isolate.New(isolate.Settings{CrashLimit: 3, Now: time.Now}, isolate.Start{Evidence: offsets.Evidence{Suspect: 3, Singly: []offsets.Span{{First: 1, Last: 1}}}, End: -1})
	l.source.batches.Push(batch{recs: []*kgo.Record{{Offset: 0}, {Offset: 1}, {Offset: 2}}})
	for order, overtakes := range map[Order]bool{OrderPartition: false, OrderKey: true} {
		l.c.cfg.Order = order
		var found suspected
		if found.add(f, nil, time.Now()); (found.single != nil) != overtakes || len(found.groups) != 1 {
			t.Errorf("order %d: alone %+v, groups %+v", order, found.single, found.groups)
		}
	}
}

// A unit of the lane may have many records, of which the one that is to run alone is a late one. So
// the lane waits as all others do, until no handler runs.
func TestIsolator_HoldsItsOwnLaneWhileItGathers(t *testing.T) {
	t.Parallel()
	l, other := &lane{}, &lane{}
	var s isolator
	if s.holds(l) {
		t.Error("a lane waits, and no record runs alone")
	}
	s.alone.Store(l)
	for _, gathers := range []bool{true, false} {
		if s.gathers.Store(gathers); s.holds(l) != gathers || !s.holds(other) {
			t.Errorf("handlers run: %v; its lane waits: %v, another one: %v", gathers, s.holds(l), s.holds(other))
		}
	}
}

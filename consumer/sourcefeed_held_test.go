package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// holding is a lane without Kafka that holds keys.
func holding(t *testing.T, order Order) *lane {
	t.Helper()
	_, lanes := pooled(t, order, 2, 1, nil)
	l := lanes[0]
	l.c.cfg.HoldKeys, l.keys, l.held, l.intake = true, map[keyHash]*keyQueue{}, newHeldState(10), intakeOpen
	return l
}

// In a hold of the guard, a probe that succeeds with a follower would overtake the head.
func TestSourceFeed_ProbesNoFollowerOfAHeldKey(t *testing.T) {
	t.Parallel()
	l := holding(t, OrderKey)
	l.source.takePolled([]*kgo.Record{{Key: []byte("a")}, {Key: []byte("a"), Offset: 1}}, 2)
	(*l.source.ready.Head()).probed = 1
	if x := l.source.nextFollower(1); x.item != nil {
		t.Errorf("record %d is probed in front of its head", x.item.offset())
	}
	l.held = nil
	if x := l.source.nextFollower(1); x.item == nil {
		t.Error("without HoldKeys none is probed: this test tests nothing")
	}
}

// A failed probe under OrderPartition keeps its key: the next probe is one of another key.
func TestSourceFeed_FailedProbeKeepsItsKey(t *testing.T) {
	t.Parallel()
	l := holding(t, OrderPartition)
	f := l.source
	f.takePolled([]*kgo.Record{{Key: []byte("a")}, {Key: []byte("a"), Offset: 1}, {Key: []byte("b"), Offset: 2}, {Key: []byte("a"), Offset: 3}, {Offset: 4}}, 5)
	u := f.cutRecords(1)
	f.busy = false
	if !f.putProbeBack(u.recs[0]) || f.putProbeBack(&kgo.Record{}) {
		t.Error("want a record with a key to keep it, and one without to have none")
	}
	if !f.mayCutNext() || f.batches.Head().recs[0].Offset != 2 {
		t.Errorf("the next probe is %d, want 2", f.batches.Head().recs[0].Offset)
	}
	if u := f.cutRecords(unitRecords); len(u.recs) != 1 {
		t.Errorf("a unit has %d records, want it to end before the one that waits", len(u.recs))
	}
	f.busy = false
	if u := f.cut(); u == nil || u.item == nil || u.item.offset() != 0 || u.key == 0 {
		t.Errorf("the next unit is %+v, want the failed record", u)
	}
	f.busy = false
	if !f.mayCutNext() || f.batches.Head().recs[0].Offset != 4 || l.behindOthers != 2 {
		t.Errorf("%d records wait behind it, want 2", l.behindOthers)
	}
}

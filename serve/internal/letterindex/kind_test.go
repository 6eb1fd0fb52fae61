package letterindex

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// failures returns letters from an offset on, of a fingerprint and a version each.
func failures(class string, from, n int, failed time.Time) (all []*dlq.Letter) {
	for i := range n {
		at := from + i
		all = append(all, &dlq.Letter{
			Record: &kgo.Record{Topic: "orders.dlq", Offset: int64(at), Timestamp: failed},
			Meta: headers.Meta{
				Class: class, Fingerprint: fmt.Sprint("f", at), Version: fmt.Sprint("v", at), Group: fmt.Sprint("g", at), Reason: headers.ReasonTerminal, FailedAt: failed,
			},
		})
	}
	return all
}

// However many kinds there are, a new one has its class, by which rules go, and the others have the
// class and the reason at least.
func TestKinds_LoseTheClassLast(t *testing.T) {
	t.Parallel()
	b := New("orders.dlq", "orders.dlq.ledger")
	b.partitions[0] = &partition{}
	began := time.UnixMilli(1.7e12)
	b.add(failures("decode", 0, mostGroups+5_000, began))
	later := began.Add(time.Hour)
	b.add(failures("http.503", mostGroups+5_000, 3, later))
	f := dlq.Filter{Classes: []string{"http.*"}}
	if got := b.Select(&f).Open; got != 3 {
		t.Errorf("the index has %d open letters of http.*, want 3", got)
	}
	if last := b.LastFailed(&f); !last.Equal(later) {
		t.Errorf("the last of them failed at %v, want %v", last, later)
	}
	for _, want := range []struct {
		offset int64
		kind   Kind
	}{
		{mostKinds - 1, Kind{"decode", "f9999", headers.ReasonTerminal, "g9999", "v9999", ""}},
		{mostFingerprints - 1, Kind{"decode", "f14999", headers.ReasonTerminal, "g14999", "", ""}},
		{mostGroups - 1, Kind{"decode", "", headers.ReasonTerminal, "g19999", "", ""}},
		{mostGroups, Kind{"decode", "", headers.ReasonTerminal, "", "", ""}},
	} {
		if row, _ := b.At(0, want.offset); row.Kind != want.kind {
			t.Errorf("the letter at %d is of %+v, want %+v", want.offset, row.Kind, want.kind)
		}
	}
}

// Kinds whose letters retention deleted make room for others. What came of them stays counted.
func TestKinds_GoWithTheirLetters(t *testing.T) {
	t.Parallel()
	b := New("orders.dlq", "orders.dlq.ledger")
	b.ledger, b.partitions[0] = dlq.NewLedger(b.topic, b.ledgerTopic), &partition{}
	b.complete = time.Now()
	b.add(failures("http.503", 0, mostKinds, time.Now()))
	const left = mostKinds - 100
	b.begin(&dlq.Cursor{At: map[int32]int64{0: left}, End: map[int32]int64{0: mostKinds}})
	b.add(failures("decode", mostKinds, left, time.Now()))
	for _, at := range []int64{left, mostKinds - 1, mostKinds, mostKinds + left - 1} {
		want := Kind{"decode", fmt.Sprint("f", at), headers.ReasonTerminal, fmt.Sprint("g", at), fmt.Sprint("v", at), ""}
		if at < mostKinds {
			want.Class = "http.503"
		}
		if row, ok := b.At(0, at); !ok || row.Kind != want {
			t.Errorf("the letter at %d is of %+v, want %+v", at, row.Kind, want)
		}
	}
	if got := b.Flow().Written; len(got) != 2 || got["http.503"] != mostKinds || got["decode"] != left {
		t.Errorf("the index saw %v come", got)
	}
	if got := b.Came(&dlq.Filter{Classes: []string{"http.*"}}); got != mostKinds {
		t.Errorf("%d letters of http.* came, want %d", got, mostKinds)
	}
}

// A rule brings back siding's letters of a class alone, also where there are so many kinds that
// they lose their groups.
func TestKinds_KeepTheDialect(t *testing.T) {
	t.Parallel()
	b := New("orders.dlq", "orders.dlq.ledger")
	b.ledger, b.partitions[0] = dlq.NewLedger(b.topic, b.ledgerTopic), &partition{}
	b.add(failures("decode", 0, mostGroups, time.Now()))
	others := failures("decode", mostGroups, 3, time.Now())
	for _, l := range others {
		l.Dialect = "spring"
	}
	b.add(others)
	for dialect, want := range map[string]int64{"": mostGroups, "spring": 3, "connect": 0} {
		if got := b.Select(&dlq.Filter{Classes: []string{"decode"}, Dialects: []string{dialect}}).Open; got != want {
			t.Errorf("%d open letters of dialect %q, want %d", got, dialect, want)
		}
	}
	if got := b.Select(&dlq.Filter{Classes: []string{"decode"}}).Open; got != mostGroups+3 {
		t.Errorf("%d open letters of the class", got)
	}
}

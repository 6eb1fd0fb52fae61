package dlq

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
)

func TestLedger_LettersAreOpenWithoutAnOutcome(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(3) {
			k.fill(t, "orders.dlq", p, 4)
		}
		for i, s := range states { // Unknown is about 0:2, and Reopened about 0:3
			k.record(t, "orders.dlq", int32(i%3), int64(i/3), Entry{State: s})
		}
		check(t, k.open(t, k.ledger("orders.dlq"), Filter{}, Cursor{}), nil, "0:2", "0:3", "1:3", "2:3")
	})
}

func TestLedger_CopyOfALetterIsNotOpen(t *testing.T) {
	t.Parallel()
	redriven := func(id string) func(*headers.Meta) {
		return func(m *headers.Meta) {
			m.Redrive = headers.Redrive{ID: id, Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: 1}}
		}
	}
	for name, c := range map[string]struct {
		first, second headers.Meta
		resolved      bool // the first one is
		want          []string
	}{
		"the same place, group and run": {first: from(7), second: from(7), want: []string{"0:0"}},
		"and it is resolved":            {first: from(7), second: from(7), resolved: true},
		"it failed otherwise":           {first: from(7), second: changed(from(7), func(m *headers.Meta) { m.Class = "timeout" }), want: []string{"0:0"}},
		"by one run":                    {first: changed(from(7), redriven("r")), second: changed(from(7), redriven("r")), want: []string{"0:0"}},
		"another place":                 {first: from(7), second: from(8), want: []string{"0:0", "0:1"}},
		"another group":                 {first: from(7), second: changed(from(7), func(m *headers.Meta) { m.Group = "shipping" }), want: []string{"0:0", "0:1"}},
		"another topic":                 {first: from(7), second: changed(from(7), func(m *headers.Meta) { m.Original.Topic = "pay" }), want: []string{"0:0", "0:1"}},
		"another id of the topic":       {first: from(7), second: changed(from(7), ofSource(2)), want: []string{"0:0", "0:1"}},
		"no id of the topic":            {first: changed(from(7), ofSource(0)), second: changed(from(7), ofSource(0)), want: []string{"0:0", "0:1"}},
		"another partition":             {first: from(7), second: changed(from(7), func(m *headers.Meta) { m.Original.Partition = 1 }), want: []string{"0:0", "0:1"}},
		"brought back meanwhile":        {first: from(7), second: changed(from(7), redriven("r")), resolved: true, want: []string{"0:1"}},
		"by another run":                {first: changed(from(7), redriven("r")), second: changed(from(7), redriven("q")), want: []string{"0:0", "0:1"}},
		"it does not say from where":    {first: headers.Meta{Group: "billing"}, second: headers.Meta{Group: "billing"}, want: []string{"0:0", "0:1"}},
		"headers that are not believed": {
			first: from(7), second: changed(from(7), func(m *headers.Meta) { m.Reason = headers.ReasonMalformed }), want: []string{"0:0", "0:1"},
		},
	} {
		runOnKafka(t, name, func(t *testing.T, k *kafka) {
			k.write(t, "one.dlq", &kgo.Record{Value: []byte("first")}, c.first)
			k.write(t, "one.dlq", &kgo.Record{Value: []byte("second")}, c.second)
			if c.resolved {
				time.Sleep(time.Second)
				k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
			}
			l := k.ledger("one.dlq")
			check(t, k.open(t, l, Filter{}, Cursor{}), nil, c.want...)
			for _, letter := range collect(t, l.Letters(t.Context(), Filter{}, Cursor{}, WithResolved)) {
				open := slices.Contains(c.want, fmt.Sprintf("0:%d", letter.Record.Offset))
				if letter.State.Resolves() == open || letter.Record.Offset == 1 && !open && letter.State != Duplicate {
					t.Errorf("letter %d is %q, want open %v", letter.Record.Offset, letter.State, open)
				}
			}
		})
	}
}

// A dead-letter topic with all kinds of letters that real ones have.
func TestLedger_EachKindOfRecordIsItsOwnLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		original := []kgo.RecordHeader{header(headers.OriginalTopic, "orders"), header(headers.OriginalPartition, "0"), header(headers.OriginalOffset, "7")}
		with := func(more ...kgo.RecordHeader) *kgo.Record {
			return &kgo.Record{Topic: "one.dlq", Headers: append(slices.Clone(original), more...)}
		}
		cl := k.client(t, kgo.TransactionalID("tx"))
		abort, commit := kgo.TryAbort, kgo.TryCommit
		k.inTransaction(t, cl, &abort, "gone")    // 0, and its marker 1
		k.inTransaction(t, cl, &commit, "2", "3") // and the marker 4
		k.produce(t,
			&kgo.Record{Topic: "one.dlq", Key: []byte("k")}, // 5: a tombstone
			// 6
			&kgo.Record{Topic: "one.dlq", Headers: []kgo.RecordHeader{header("kafka_dlt-original-topic", "orders"), header("dlq-", ""), {Key: "dlq-mine"}}},
			with(), with(), // 7, 8: siding's headers without a reason
			// 9: there twice
			with(header(headers.FailureReason, "terminal"), header(headers.OriginalOffset, "7")),
			// 10
			with(header(headers.FailureReason, "terminal"), header(headers.Group, "a"), header(headers.Group, "a")),
			// 11
			&kgo.Record{Topic: "one.dlq", Headers: []kgo.RecordHeader{header(headers.FailureReason, "terminal")}},
			// 12
			&kgo.Record{Topic: "one.dlq", Headers: append(slices.Clone(original[:2]), header(headers.OriginalOffset, ""))},
		)
		omitted := from(7)
		omitted.ValueOmitted = true
		k.write(t, "one.dlq", &kgo.Record{}, omitted) // 13
		k.write(t, "one.dlq", &kgo.Record{}, omitted) // 14: its copy
		l := k.ledger("one.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:2", "0:3", "0:5", "0:6", "0:7", "0:8", "0:9", "0:10", "0:11", "0:12", "0:13")
		s := summarize(t, l)
		// The damaged ones are 7 to 10, and 12.
		if s.Open != 11 || s.Duplicates != 1 || s.Resolved != 0 || s.Foreign != 5 || s.Malformed != 5 {
			t.Errorf("summary %+v", s)
		}
	})
}

func TestLedger_MayHaveOtherPartitionsThanItsTopic(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int32{1, 5} {
		runOnKafka(t, fmt.Sprint(partitions), func(t *testing.T, k *kafka) {
			k.create(t, "adopted", partitions)
			for p := range partitions {
				m := from(7)
				m.Original.Partition = 9
				k.write(t, "adopted", &kgo.Record{Partition: p}, m)
				k.write(t, "adopted", &kgo.Record{Partition: p}, headers.Meta{})
			}
			// of a partition that may not exist
			k.record(t, "orders.dlq", 2, 0, Entry{State: Succeeded})
			k.record(t, "orders.dlq", 0, 0, Entry{State: Succeeded})
			l := NewLedger("adopted", "orders.dlq.ledger", k.opts()...)
			want := []string{"0:1", "1:0", "1:1", "2:1", "3:0", "3:1", "4:0", "4:1"}
			if partitions == 1 {
				want = want[:1]
			}
			check(t, k.open(t, l, Filter{}, Cursor{}), nil, want...)
		})
	}
}

func TestLedger_PageKnowsDuplicatesOfThePageBefore(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, offset := range []int64{7, 8, 7, 8, 9} {
			k.write(t, "one.dlq", &kgo.Record{}, from(offset))
		}
		l := k.ledger("one.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{At: map[int32]int64{0: 2}}), nil, "0:4")
		check(t, k.open(t, l, Filter{}, Cursor{At: map[int32]int64{0: 1}, End: map[int32]int64{0: 4}}), nil, "0:1")
		ranges := Filter{Ranges: []Range{At(0, 3), {Partition: 0, From: 4}}}
		check(t, k.open(t, l, ranges, Cursor{}), nil, "0:4")
		if s, err := l.Summarize(t.Context(), ranges, Cursor{}, nil); err != nil || s.Open != 1 || s.Duplicates != 1 {
			t.Errorf("summary %+v, %v", s, err)
		}
	})
}

// A page of a large topic would be slow if it read letters that it does not need.
func TestLedger_LettersReadBackForDuplicatesOnly(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		records := make([]*kgo.Record, 3*lookBack)
		for i := range records {
			records[i] = &kgo.Record{Topic: "one.dlq"}
		}
		k.produce(t, records...)
		l := NewLedger("one.dlq", "one.dlq.ledger", k.opts(kgo.FetchMaxBytes(1))...)
		read(t, l)
		fetched := int64(1 << 62)
		hook := &firstFetched{&fetched}
		l.opts = append(l.opts, kgo.WithHooks(hook))
		const at = 3*lookBack - 1
		check(t, k.open(t, l, Filter{}, Cursor{At: map[int32]int64{0: at}}), nil, fmt.Sprintf("0:%d", at))
		if fetched < at-lookBack || fetched > at-lookBack/2 {
			t.Errorf("the first offset that was fetched is %d, want %d", fetched, at-lookBack)
		}
	})
}

// firstFetched notes the least offset that a client got.
type firstFetched struct{ offset *int64 }

func (f *firstFetched) OnFetchRecordBuffered(r *kgo.Record)     { *f.offset = min(*f.offset, r.Offset) }
func (*firstFetched) OnFetchRecordUnbuffered(*kgo.Record, bool) {}

// A list shows its first row after the first fetch, so that fetch is small. A summary needs the
// last fetch anyway.
func TestLedger_FirstLetterDoesNotWaitForTheRest(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 1)
		var most atomic.Int32
		k.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			most.Store(max(most.Load(), r.(*kmsg.FetchRequest).MaxBytes))
			return nil, nil, false
		})
		l := k.readLedger(t, "one.dlq")
		for name, c := range map[string]struct {
			read  func()
			small bool
		}{
			"all":     {func() { k.read(t.Context(), "one.dlq", Filter{}, Cursor{}) }, true},
			"open":    {func() { k.open(t, l, Filter{}, Cursor{}) }, true},
			"summary": {func() { _, _ = l.Summarize(t.Context(), Filter{}, Cursor{}, nil) }, false},
		} {
			most.Store(0)
			if c.read(); most.Load() == 0 || (most.Load() <= 1<<20) != c.small {
				t.Errorf("%s: asks for %d bytes at a time", name, most.Load())
			}
		}
	})
}

func TestLedger_LettersReadOnlyTheRanges(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(3) {
			k.fill(t, "orders.dlq", p, 6)
		}
		// Reading partition 1 would take a minute and fail.
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		for _, c := range []struct {
			ranges []Range
			want   []string
		}{
			{[]Range{At(0, 3)}, []string{"0:3"}},
			{[]Range{At(0, 3), At(0, 1), At(2, 5), At(2, 6), At(9, 0)}, []string{"0:1", "0:3", "2:5"}},
			{[]Range{{Partition: 0, From: 4}, {Partition: 2, Until: 2}}, []string{"0:4", "0:5", "2:0", "2:1"}},
			{[]Range{At(9, 0)}, nil},
		} {
			k.wantRead(t, "orders.dlq", Filter{Ranges: c.ranges}, Cursor{}, c.want...)
			check(t, k.open(t, k.ledger("orders.dlq"), Filter{Ranges: c.ranges}, Cursor{}), nil, c.want...)
			partitions := map[byte]bool{}
			for _, at := range c.want {
				partitions[at[0]] = true
			}
			s, err := k.ledger("orders.dlq").Summarize(t.Context(), Filter{Ranges: c.ranges}, Cursor{}, nil)
			if err != nil || s.Open != int64(len(c.want)) || len(s.Partitions) != len(partitions) {
				t.Errorf("%v: summary %+v, %v", c.ranges, s, err)
			}
		}
	})
}

func TestLedger_UntrackedGroupsLoseNoLetters(t *testing.T) {
	t.Parallel()
	ls := newDeduper()
	var g headerView
	duplicate := func(group string) bool {
		m := from(7)
		m.Group = group
		g.read(m.Append(nil))
		l := ls.of(0, &g)
		return l != nil && l.add(&g, time.Time{}, false) == copyOfOpen
	}
	for i := range maxGroups + 10 {
		if duplicate(fmt.Sprint("group-", i)) {
			t.Fatalf("the first letter of group %d is a duplicate", i)
		}
	}
	if !duplicate("group-0") || !duplicate(fmt.Sprint("group-", maxGroups-1)) {
		t.Error("a duplicate of a group that is tracked is not known")
	}
	if duplicate(fmt.Sprint("group-", maxGroups)) || len(ls.groups) != maxGroups {
		t.Errorf("%d groups are tracked", len(ls.groups))
	}
}

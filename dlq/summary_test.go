package dlq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

func TestSummary_CountsOpenLettersByFailure(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		at := time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)
		letter := func(p int32, offset int64, class, group string, failed time.Duration) {
			m := from(offset)
			m.Class, m.Group, m.Message, m.FailedAt = class, group, fmt.Sprintf("%s %d", class, offset), at.Add(failed)
			k.write(t, "orders.dlq", &kgo.Record{Partition: p}, m)
		}
		letter(0, 1, "sku", "billing", 1*time.Hour) // pending
		letter(0, 2, "sku", "billing", 3*time.Hour)
		letter(0, 3, "busy", "billing", 9*time.Hour)
		letter(0, 2, "sku", "billing", 0)           // a copy
		letter(0, 6, "sku", "billing", 5*time.Hour) // resolved
		letter(2, 4, "sku", "shipping", 2*time.Hour)
		time.Sleep(time.Minute)
		letter(2, 5, "sku", "billing", 4*time.Hour)
		k.produce(t, &kgo.Record{Topic: "orders.dlq", Partition: 1, Timestamp: at})
		k.record(t, "orders.dlq", 0, 0, Entry{State: Redriven})
		k.record(t, "orders.dlq", 0, 4, Entry{State: Redriven})
		k.record(t, "orders.dlq", 0, 4, Entry{State: Failed})
		l := k.ledger("orders.dlq")
		var progress [2]int64
		s, err := l.Summarize(t.Context(), Filter{}, Cursor{}, func(read, total int64) { progress = [2]int64{read, total} })
		if err != nil {
			t.Fatal(err)
		}
		if progress != [2]int64{8, 8} {
			t.Errorf("progress of %d offsets", progress)
		}
		const fp = "0123456789abcdef"
		want := &Summary{
			Topic: "orders.dlq", Open: 5, Pending: 1, Resolved: 1, Duplicates: 1, Foreign: 1, ResolvedAs: map[State]int64{Failed: 1},
			Failures: []Failure{
				{Class: "sku", Fingerprint: fp, Count: 3, First: at.Add(2 * time.Hour), Last: at.Add(4 * time.Hour), Sample: "sku 4", Partition: 2, Groups: []string{"billing", "shipping"}},
				{Count: 1, First: at, Last: at, Partition: 1},
				{Class: "busy", Fingerprint: fp, Count: 1, First: at.Add(9 * time.Hour), Last: at.Add(9 * time.Hour), Sample: "busy 3", Offset: 2, Groups: []string{"billing"}},
			},
			Groups: []GroupCount{{Group: "billing", Open: 3}, {Open: 1}, {Group: "shipping", Open: 1}},
			Partitions: []PartitionCount{
				{Partition: 0, Open: 2, Pending: 1, Resolved: 1, Duplicates: 1, OldestOffset: 1},
				{Partition: 1, Open: 1},
				{Partition: 2, Open: 2},
			},
		}
		oldest, ok := s.Oldest()
		if !ok || oldest.Partition != 1 || !oldest.Oldest.Equal(at) {
			t.Errorf("oldest %+v", oldest)
		}
		for i := range s.Partitions {
			s.Partitions[i].Oldest = time.Time{} // the broker's
		}
		if d := cmp.Diff(want, s); d != "" {
			t.Error(d)
		}

		s, err = l.Summarize(t.Context(), Filter{Classes: []string{"sku"}, Groups: []string{"billing"}}, Cursor{}, nil)
		if err != nil || s.Open != 2 || s.Pending != 1 || s.Resolved != 1 || s.Duplicates != 1 || len(s.Failures) != 1 || s.Failures[0].Count != 2 {
			t.Errorf("of one class and group: %+v, %v", s, err)
		}
		if s, err = l.Summarize(t.Context(), Filter{Classes: []string{"none"}}, Cursor{}, nil); err != nil || s.Open != 0 {
			t.Errorf("of none: %+v, %v", s, err)
		}
		if _, ok := s.Oldest(); ok {
			t.Error("none is open, and one is the oldest")
		}
		// the copy's letter is before it
		page := Cursor{At: map[int32]int64{0: 2}, End: map[int32]int64{0: 4, 2: 1}}
		if s, err = l.Summarize(t.Context(), Filter{}, page, nil); err != nil || s.Open != 2 || s.Resolved != 0 || s.Duplicates != 1 || len(s.Partitions) != 2 {
			t.Errorf("of a page: %+v, %v", s, err)
		}
	})
}

// A summary reads few headers and a list reads all of them, and both count the same open letters.
func TestSummary_AgreesWithAList(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		rnd := rand.New(rand.NewPCG(1, 2))
		pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
		var records []*kgo.Record
		for range 3_000 {
			m := from(rnd.Int64N(400))
			m.Class, m.Group = pick("a", "b", "päng", ""), pick("billing", "shipping")
			r := &kgo.Record{Topic: "orders.dlq", Partition: rnd.Int32N(3), Headers: m.Append(nil)}
			if i := rnd.IntN(3 * len(r.Headers)); i < len(r.Headers) {
				switch rnd.IntN(4) {
				case 0:
					r.Headers[i].Value = []byte("\xff!")
				case 1:
					r.Headers = append(r.Headers, r.Headers[i])
				case 2:
					r.Headers = r.Headers[i:]
				case 3:
					r.Headers[i].Value = nil
				}
			}
			records = append(records, r)
		}
		k.produce(t, records...)
		for offset := range int64(300) {
			k.record(t, "orders.dlq", 1, offset*3, Entry{State: states[offset%int64(len(states))]})
		}
		l := k.readLedger(t, "orders.dlq")
		s := summarize(t, l)
		resolvedAs := map[State]int64{}
		byFailure, byGroup, open, resolved := map[string]int64{}, map[string]int64{}, int64(0), int64(0)
		for _, letter := range collect(t, l.Letters(t.Context(), Filter{}, Cursor{}, WithResolved)) {
			if letter.State.Resolves() {
				resolved++
				if letter.State != Duplicate && letter.State != Redriven {
					resolvedAs[letter.State]++
				}
			} else {
				open++
				byFailure[letter.Meta.Class+"/"+letter.Meta.Fingerprint]++
				byGroup[letter.Meta.Group]++
			}
		}
		if s.Open != open || s.Pending+s.Resolved+s.Duplicates != resolved || open == 0 || s.Duplicates == 0 || s.Malformed == 0 {
			t.Errorf("the summary has %d open, %d resolved, the list %d and %d", s.Open, s.Pending+s.Resolved+s.Duplicates, open, resolved)
		}
		delete(s.ResolvedAs, Duplicate) // a list does not separate those with an entry
		if d := cmp.Diff(resolvedAs, s.ResolvedAs); d != "" {
			t.Error(d)
		}
		got := map[string]int64{}
		for _, f := range s.Failures {
			got[f.Class+"/"+f.Fingerprint] = f.Count
		}
		if d := cmp.Diff(byFailure, got); d != "" {
			t.Errorf("by class and fingerprint (-list +summary):\n%s", d)
		}
		got = map[string]int64{}
		for _, g := range s.Groups {
			got[g.Group] = g.Open
		}
		if d := cmp.Diff(byGroup, got); d != "" {
			t.Errorf("by group (-list +summary):\n%s", d)
		}
	})
}

func TestSummary_FoldsTheSameInAnyOrder(t *testing.T) {
	cases.Alone(t)
	t.Parallel()
	var letters []*kgo.Record
	total := map[string]int64{} // by class
	for i := range 3 * maxFailures {
		m := from(int64(i))
		m.Class = fmt.Sprintf("class-%03d", i%(2*maxFolded))
		m.Fingerprint = fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15)
		m.Group = fmt.Sprintf("group-%04d", i%(maxGroups+50))
		m.FailedAt, m.Message = time.UnixMilli(int64(i%7)), fmt.Sprint(i)
		for range 1 + i%3 {
			m.Original.Offset += 1 << 32
			letters = append(letters, &kgo.Record{Offset: int64(len(letters)), Headers: m.Append(nil)})
			total[m.Class]++
		}
	}
	summary := func(order []int) *Summary {
		ta := newSummarizer(NewLedger("t", "l"), Filter{})
		ta.judge.deduper.groups = map[string]bool{}
		ta.partitions[0] = &summarizedLetter{}
		for _, i := range order {
			ta.add(letters[i])
		}
		s := ta.summary()
		s.Partitions = nil // its oldest is the one that came first
		return s
	}
	order := make([]int, len(letters))
	for i := range order {
		order[i] = i
	}
	want := summary(order)
	for seed := range uint64(5) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if d := cmp.Diff(want, summary(order)); d != "" {
			t.Fatal(d)
		}
	}
	own, folded, rest, n := 0, 0, 0, int64(0)
	for _, f := range want.Failures {
		n += f.Count
		switch {
		case !f.Folded:
			own++
		case f.Class != "":
			folded++
		default:
			rest++
		}
		total[f.Class] -= f.Count
	}
	if own != maxFailures || folded != maxFolded || rest != 1 || n != int64(len(letters)) {
		t.Errorf("%d failures, %d folded by class, %d of the rest; they count %d of %d letters", own, folded, rest, n, len(letters))
	}
	if total["class-000"] != 0 {
		t.Error("letters of a class that is among the first are not in it")
	}
	groups := int64(0)
	for _, g := range want.Groups {
		groups += g.Open
	}
	if len(want.Groups) != maxGroups+1 || groups != n {
		t.Errorf("%d groups with %d letters, want %d with %d", len(want.Groups), groups, maxGroups+1, n)
	}
}

// The summarizer keeps the failure of the previous letter, for speed. A failure that was folded
// must not stay there.
func TestSummarizer_CountsLettersOfAFoldedFailure(t *testing.T) {
	t.Parallel()
	ta := newSummarizer(NewLedger("t", "l"), Filter{})
	ta.partitions[0] = &summarizedLetter{}
	n := int64(0)
	add := func(fingerprint int) {
		m := from(n)
		m.Fingerprint = fmt.Sprintf("%016x", fingerprint)
		ta.add(&kgo.Record{Offset: n, Headers: m.Append(nil)})
		n++
	}
	for i := range maxFailures - 1 {
		add(2 * i)
	}
	last := 2 * maxFailures
	for _, fingerprint := range []int{last, last, 1, last, last} {
		add(fingerprint)
	}
	counted := int64(0)
	for _, f := range ta.summary().Failures {
		counted += f.Count
	}
	if counted != n {
		t.Errorf("%d of %d letters are counted", counted, n)
	}
}

func TestFailure_SampleIsShortText(t *testing.T) {
	t.Parallel()
	ta := newSummarizer(NewLedger("t", "l"), Filter{})
	ta.partitions[0] = &summarizedLetter{}
	ta.add(&kgo.Record{Headers: []kgo.RecordHeader{header(headers.FailureReason, "terminal"), header(headers.ErrorMessage, "\xff"+strings.Repeat("ä", 1000))}})
	if got, want := ta.summary().Failures[0].Sample, strings.Repeat("ä", 127); got != want {
		t.Errorf("sample %q, want %q", got, want)
	}
}

func TestSummary_WithoutAPartitionSaysSo(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		k.fill(t, "orders.dlq", 1, 2)
		l := k.readLedger(t, "orders.dlq")
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		s, err := l.Summarize(t.Context(), Filter{}, Cursor{}, nil)
		if err == nil || !strings.Contains(err.Error(), "partition 1 delivered nothing") || s == nil || s.Open != 2 {
			t.Errorf("summary %+v, %v; want that of partition 0, and an error", s, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := l.Summarize(ctx, Filter{}, Cursor{}, nil); s != nil || err == nil {
			t.Errorf("summary %+v, %v of a read that was cancelled", s, err)
		}
	})
}

// storm returns the letters of a bug: n letters with a few kinds of failure, each with a record of
// its own and one array of headers.
func storm(n int) []*kgo.Record {
	var enc headers.Encoder
	letters := make([]*kgo.Record, n)
	at := time.UnixMilli(1_763_000_000_000)
	for i := range letters {
		m := from(int64(i) * 3)
		m.Original.TopicID, m.Original.Timestamp = [16]byte{1}, at
		m.Class, m.Fingerprint = fmt.Sprint("orders.Error", i%5/4), fmt.Sprintf("%016x", i%5)
		m.Message, m.Stack = fmt.Sprintf("order %d: no such SKU", i), "main.handle\n\tmain.go\n"
		m.FirstFailedAt, m.FailedAt, m.Hops, m.Attempts = at, at, 4, 4
		m.Version, m.Environment, m.Host = "v1.4.1", "production", "orders-7d4f"
		for n := range 4 {
			m.History = append(m.History, headers.Attempt{Number: n + 1, Class: m.Class, At: at})
		}
		letters[i] = &kgo.Record{Offset: int64(i), Timestamp: at, Value: make([]byte, 200), Headers: enc.Append(&m, []kgo.RecordHeader{header("content-type", "json"), header("traceparent", "00-0af7651916cd43dd")})}
	}
	return letters
}

// Not parallel: it counts the allocations of the process.
func TestSummarizer_AllocatesNothingPerLetter(t *testing.T) {
	letters := storm(1000)
	ta := newSummarizer(NewLedger("t", "l"), Filter{})
	ta.partitions[0] = &summarizedLetter{}
	i := 0
	add := func() {
		ta.add(letters[i%len(letters)])
		i++
	}
	for range 2 * len(letters) {
		add()
	}
	if got := testing.AllocsPerRun(1000, add); got > 0 {
		t.Errorf("%v allocations a letter", got)
	}
}

// Not parallel: it measures the heap.
func TestSummarizer_FourMillionLettersTake64MiB(t *testing.T) {
	cases.Skip(t)
	const partitions = 8
	n := int64(4_000_000)
	for name, every := range map[string]int64{"dense": 1, "one in a hundred fails": 100} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			l := NewLedger("t", "l")
			note := &LedgerRecord{Record: &kgo.Record{}, Entry: Entry{State: Succeeded}}
			ta := newSummarizer(l, Filter{})
			r := &kgo.Record{}
			m := from(0)
			for p := range int32(partitions) {
				ta.partitions[p] = &summarizedLetter{}
			}
			m.Message = "no such SKU"
			h := m.Append(nil)
			value := make([]byte, 0, 20)
			for i := range n {
				r.Partition, r.Offset = int32(i%partitions), i/partitions
				if i%2 == 0 {
					note.Record.Partition, note.Letter = r.Partition, r.Offset
					l.take(note)
				}
				for j := range h {
					if h[j].Key == headers.OriginalOffset {
						value = fmt.Append(value[:0], r.Offset*every)
						h[j].Value = value
					}
				}
				r.Headers = h
				ta.add(r)
			}
			took := heap() - before
			if s := ta.summary(); s.Open != n/2 || s.Resolved != n/2 || s.Duplicates != 0 {
				t.Fatalf("summary %+v", s)
			}
			t.Logf("%d letters: %.1f MiB", n, float64(took)/(1<<20))
			if most := 64 << 20 * n / 4_000_000; took > most {
				t.Errorf("%d letters take %d bytes, want %d at most", n, took, most)
			}
		})
	}
}

func TestSummary_CountsByTheTimeOfFailure(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		at := time.Date(1999, 12, 1, 10, 0, 0, 0, time.UTC)
		for i, minute := range []float64{0, 9.99, 10, 25, 25, 3, 60 * 24} {
			m := from(int64(i))
			m.FailedAt = at.Add(time.Duration(minute * float64(time.Minute)))
			k.write(t, "orders.dlq", &kgo.Record{Partition: int32(i % 3)}, m)
		}
		k.record(t, "orders.dlq", 0, 1, Entry{State: Discarded}) // the first at 25
		s, err := k.ledger("orders.dlq").SummarizeBy(t.Context(), Filter{}, Cursor{}, SummaryBy{Times: 10 * time.Minute}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []TimeCount{{From: at, Open: 3}, {From: at.Add(10 * time.Minute), Open: 1}, {From: at.Add(20 * time.Minute), Open: 1}, {From: at.Add(24 * time.Hour), Open: 1}}
		if d := cmp.Diff(want, s.Times); d != "" {
			t.Error(d)
		}
		// Of more times than there is room for the latest are kept, in whatever order they come.
		m := from(100)
		var records []*kgo.Record
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(maxTimes + 50) {
			m.Original.Offset++
			m.FailedAt = at.AddDate(1, 0, 0).Add(time.Duration(i) * time.Second)
			records = append(records, &kgo.Record{Topic: "one.dlq", Headers: m.Append(nil)})
		}
		k.produce(t, records...)
		s, err = k.ledger("one.dlq").SummarizeBy(t.Context(), Filter{}, Cursor{}, SummaryBy{Times: time.Second}, nil)
		if err != nil || len(s.Times) != maxTimes+1 || s.Times[0] != (TimeCount{From: s.Times[0].From, Earlier: true, Open: 50}) ||
			!s.Times[0].From.Equal(at.AddDate(1, 0, 0)) || !s.Times[1].From.Equal(at.AddDate(1, 0, 0).Add(50*time.Second)) || s.Times[maxTimes].Open != 1 {
			t.Errorf("%d times, %+v, %v", len(s.Times), s.Times[:2], err)
		}
		if _, err := k.ledger("one.dlq").SummarizeBy(t.Context(), Filter{}, Cursor{}, SummaryBy{Times: time.Millisecond}, nil); err == nil {
			t.Error("it counts by the millisecond")
		}
		if s := summarize(t, k.readLedger(t, "one.dlq")); s.Times != nil {
			t.Errorf("times that were not asked for: %d", len(s.Times))
		}
	})
}

// A row names few groups, and the same ones in whichever order the letters are read.
func TestFailure_NamesTheGroupsThatSortFirst(t *testing.T) {
	t.Parallel()
	var up, down Failure
	for i := range 26 {
		up.addGroup([]byte{byte('a' + i)})
		down.addGroup([]byte{byte('z' - i)})
	}
	up.addGroup([]byte("a\xff"))
	var merged Failure
	merged.merge(&Failure{Groups: []string{"k", "z"}})
	merged.merge(&down)
	for _, f := range []Failure{up, down, merged} {
		if got := strings.Join(f.Groups, ""); got != "abcdefghij" {
			t.Errorf("%q", got)
		}
	}
}

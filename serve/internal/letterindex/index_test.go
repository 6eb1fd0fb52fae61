package letterindex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// cluster is an embedded broker with a dead-letter topic and its ledger.
type cluster struct {
	t    *testing.T
	opts []kgo.Opt
	cl   *kgo.Client
	n    int64
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c := &cluster{t: t, opts: []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}}
	if c.cl, err = kgo.NewClient(append(c.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.cl.Close)
	return c
}

// write writes n letters of a class, each of another source record.
func (c *cluster) write(n int, partition int32, class string, at time.Time) {
	c.t.Helper()
	w := dlq.NewWriter(c.cl, "orders.dlq")
	for range n {
		c.n++
		done := make(chan error, 1)
		w.Write(c.t.Context(), &kgo.Record{Topic: "orders", Partition: partition, Offset: c.n, Value: []byte("v")}, headers.Meta{
			Original: headers.Position{Topic: "orders", Partition: partition, Offset: c.n}, Group: "billing", Attempts: 1, Class: class,
			Fingerprint: "f-" + class, Message: "it failed", Reason: headers.ReasonTerminal, FirstFailedAt: at, FailedAt: at,
		}, func(err error) { done <- err })
		if err := <-done; err != nil {
			c.t.Fatal(err)
		}
	}
}

// discard discards the open letters of a filter.
func (c *cluster) discard(f dlq.Filter) {
	c.t.Helper()
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
	if _, err := l.Discard(c.t.Context(), f, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		c.t.Fatal(err)
	}
}

func refreshed(t *testing.T, b *letterindex.Index) {
	t.Helper()
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Letters and entries of the ledger count as they are read, and none twice.
func TestIndex_CountsTheRecordsThatItReads(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	reads := func(what string, least, most uint64) {
		t.Helper()
		before := b.Records()
		refreshed(t, b)
		if n := b.Records() - before; n < least || n > most {
			t.Errorf("%s: %d records were read, want %d to %d", what, n, least, most)
		}
	}
	c.write(20, 0, "decode", time.Now())
	reads("letters", 20, 20)
	reads("nothing", 0, 0)
	c.discard(dlq.Filter{})
	reads("entries", 20, 25) // the discard may have notes of its own
	reads("nothing", 0, 0)
	c.write(1, 0, "decode", time.Now())
	reads("a letter", 1, 1)
	c.discard(dlq.Filter{})
	reads("its entry", 1, 6) // and not the ledger from its start again
}

// After each of many changes, an index that was kept up counts like the ledger, which reads all
// anew.
func TestIndex_CountsLikeTheLedger(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		switch class := fmt.Sprint("c", rnd.IntN(4)); rnd.IntN(5) {
		case 0:
			c.discard(dlq.Filter{Classes: []string{class}})
		case 1:
			l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
			if _, err := l.Reopen(t.Context(), dlq.Filter{Classes: []string{class}}, dlq.Cursor{}, dlq.ReopenOptions{By: "ada", Why: "test"}); err != nil {
				t.Fatal(err)
			}
		case 2:
			l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
			p, err := l.Prunable(t.Context(), time.Time{}, nil)
			if err == nil {
				err = l.Prune(t.Context(), p, dlq.PruneOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		default:
			c.write(1+rnd.IntN(20), rnd.Int32N(3), class, time.Now().Add(-time.Duration(rnd.IntN(3600))*time.Second))
		}
		refreshed(t, b)
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
		want, err := l.Summarize(context.Background(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := b.Summary()
		if got.Open != want.Open || got.Pending != want.Pending || got.Resolved != want.Resolved || got.Duplicates != want.Duplicates {
			t.Fatalf("the index has %d open, %d pending, %d resolved, %d duplicates; the ledger %d, %d, %d, %d", got.Open, got.Pending, got.Resolved, got.Duplicates,
				want.Open, want.Pending, want.Resolved, want.Duplicates)
		}
		now := time.Now()
		age := time.Duration(1+rnd.IntN(1_000)) * time.Millisecond
		count := 1 + rnd.Int64N(100)
		for _, r := range []dlq.Retention{
			{MaxAge: age},
			{MaxAge: age, Open: true},
			{MaxCount: count},
			{MaxCount: count, MaxAge: time.Hour, Open: true},
		} {
			p, err := l.PrunableBy(t.Context(), r, now, nil)
			if err != nil {
				t.Fatal(err)
			}
			goes, held := b.Beyond(now, r)
			// Letters of the same time are beyond a count for the index.
			if goes < p.Letters || goes+held < p.Letters+p.Held || r.MaxCount == 0 && (goes != p.Letters || held != p.Held) {
				t.Fatalf("%+v: the index says %d go and %d are held, the ledger %d and %d", r, goes, held, p.Letters, p.Held)
			}
		}
		if len(got.Groups) != len(want.Failures) {
			t.Fatalf("the index has %d groups, the ledger %d", len(got.Groups), len(want.Failures))
		}
		for i, f := range want.Failures {
			if g := got.Groups[i]; g.Class != f.Class || g.Open != f.Count || !g.First.Equal(f.First) || !g.Last.Equal(f.Last) {
				t.Fatalf("group %d is %+v, the ledger has %+v", i, g, f)
			}
		}
	}
}

// Pages of a filter have each letter once, the newest first, though letters come meanwhile.
func TestIndex_PagesHaveEachLetterOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for n := range 20 {
		c.write(7, int32(n%3), fmt.Sprint("c", n%2), time.Now())
	}
	c.discard(dlq.Filter{Ranges: []dlq.Range{dlq.At(1, 3), dlq.At(2, 0)}})
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	refreshed(t, b)
	f := dlq.Filter{Classes: []string{"c1"}}
	want := map[string]bool{}
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
	for l, err := range l.Letters(t.Context(), f, dlq.Cursor{}, dlq.OpenOnly) {
		if err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprint(l.Record.Partition, ":", l.Record.Offset)] = true
	}
	if n := b.Select(&f).Open; n != int64(len(want)) {
		t.Errorf("the index selects %d letters, want %d", n, len(want))
	}
	var at dlq.Cursor
	var last time.Time
	for more, pages := true, 0; more; pages++ {
		var rows []letterindex.Row
		rows, at, more = b.Page(&f, false, at, 9)
		if pages > 0 {
			c.write(1, 1, "c1", time.Now())
			refreshed(t, b)
		}
		for _, r := range rows {
			name := fmt.Sprint(r.Partition, ":", r.Offset)
			if !want[name] {
				t.Errorf("page %d has %s, which is not to be listed, or was", pages, name)
			}
			if delete(want, name); !last.IsZero() && r.EnteredAt.After(last) {
				t.Errorf("page %d has %s behind an older one", pages, name)
			}
			last = r.EnteredAt
		}
	}
	if len(want) > 0 {
		t.Errorf("no page has %v", want)
	}
}

// A group whose letters were redriven and failed again says so, whatever version they failed in.
func TestIndex_GroupsThatFailedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.write(3, 0, "a", time.Now())
	c.write(2, 0, "b", time.Now())
	e := dlq.Entry{State: dlq.Failed, Run: "r", At: time.Now(), By: "ada", Class: "a"}
	if err := c.cl.ProduceSync(t.Context(), e.Record("orders.dlq.ledger", 0, 1)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	refreshed(t, b)
	groups := b.Select(&dlq.Filter{Groups: []string{"billing"}}).Groups
	if len(groups) != 2 || groups[0].Open != 2 || groups[0].FailedAgain != 1 || groups[1].FailedAgain != 0 {
		t.Errorf("the groups are %+v", groups)
	}
	if row, ok := b.At(0, 1); !ok || row.State != dlq.Failed || row.Kind.Class != "a" {
		t.Errorf("the letter is %+v, %v", row, ok)
	}
	for _, at := range []struct {
		partition int32
		offset    int64
	}{{0, 5}, {7, 0}, {0, -1}} {
		if row, ok := b.At(at.partition, at.offset); ok {
			t.Errorf("at %v is %+v", at, row)
		}
	}
	if acts := b.Acts(); len(acts) != 0 {
		t.Errorf("what runs did is among the acts: %+v", acts)
	}
}

// An index notices that letters are older than their ledger, which so does not know what became of
// them. It takes no ledger for such a one that came before the letters, or with them.
func TestIndex_NoticesThatTheLedgerIsAnotherOne(t *testing.T) {
	t.Parallel()
	const letters, ledger = "orders.dlq", "orders.dlq.ledger"
	for name, test := range map[string]struct {
		// w writes letters, r refreshes, - and + delete and create the ledger, D and C the topic
		steps string
		want  bool
	}{
		"the same one":                         {"wrrwr", false},
		"recreated between two looks":          {"wr-+rr", true},
		"deleted, and created later":           {"wr-rr+rr", true},
		"created while the index looked again": {"wr-r+rr", true},
		"created after the letters":            {"-wr+r", true},
		"created before the letters":           {"-r+wrr", false},
		"recreated before the first look":      {"w-+rr", false},
		"recreated with its topic":             {"wr-D+Crrwr", false},
		"its topic is recreated afterwards":    {"wr-+rrDCrrwr", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			admin := kadm.NewClient(c.cl)
			b := letterindex.New(letters, ledger, c.opts...)
			for _, step := range test.steps {
				var err error
				switch step {
				case 'w':
					c.write(2, 0, "decode", time.Now())
				case 'r':
					_ = b.Refresh(t.Context()) // it fails when it finds another ledger
				case '-':
					_, err = admin.DeleteTopic(t.Context(), ledger)
				case '+':
					_, err = admin.CreateTopic(t.Context(), 3, 1, nil, ledger)
				case 'D':
					_, err = admin.DeleteTopic(t.Context(), letters)
				case 'C':
					_, err = admin.CreateTopic(t.Context(), 3, 1, nil, letters)
					c.cl.PurgeTopicsFromProducing(letters)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := !b.Forgotten().IsZero(); got != test.want || b.Progress().Complete.IsZero() {
				t.Errorf("after %s it notices one: %v, want %v; the index is of %v", test.steps, got, test.want, b.Progress().Complete)
			}
		})
	}
}

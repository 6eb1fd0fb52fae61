package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
)

func TestRead_OmitsLettersWrittenMeanwhile(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		k.fill(t, "orders.dlq", 1, 2)
		n := 0
		for _, err := range Read(t.Context(), "orders.dlq", Filter{}, Cursor{}, k.opts(kgo.FetchMaxBytes(1), kgo.MaxConcurrentFetches(0))...) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			for p := range int32(3) {
				k.fill(t, "orders.dlq", p, 2)
			}
		}
		if n != 4 {
			t.Errorf("read %d letters, want the 4 that were there", n)
		}
	})
}

// What a filter does with each letter may take a while: so a read whose caller is gone ends before
// the next letter, not after all that was fetched.
func TestRead_EndsWithItsContextBetweenLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		judged := 0
		f := Filter{Match: func(*Letter) bool {
			judged++
			cancel()
			return false
		}}
		var last error
		for _, err := range Read(ctx, "one.dlq", f, Cursor{}, k.opts()...) {
			last = err
		}
		if judged != 1 || !errors.Is(last, context.Canceled) {
			t.Errorf("%d letters were judged, and the read ended with %v", judged, last)
		}
	})
}

func TestRead_MarksForeignRecords(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, h := range [][]kgo.RecordHeader{nil, {header("a", "1")}, {header(headers.FailureReason, "terminal"), header(headers.Attempts, "-1"), header(headers.ErrorClass, "c")}} {
			k.produce(t, &kgo.Record{Topic: "one.dlq", Headers: h})
		}
		var got []string
		for _, l := range k.letters(t, "one.dlq") {
			var field *headers.FieldError
			if !errors.As(l.MetaErr, &field) {
				t.Fatalf("MetaErr = %v, want a FieldError", l.MetaErr)
			}
			got = append(got, field.Key+" "+l.Meta.Class)
		}
		if want := []string{"dlq-reason ", "dlq-reason ", "dlq-attempts c"}; !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}

func TestRead_YieldsCommittedLettersOnly(t *testing.T) {
	t.Parallel()
	commit, abort := kgo.TryCommit, kgo.TryAbort
	for _, c := range []struct {
		name string
		ends []kgo.TransactionEndTry
		want []string
	}{
		{"ends with a commit", []kgo.TransactionEndTry{abort, commit}, []string{"0:b0", "0:b1"}},
		{"ends with an abort", []kgo.TransactionEndTry{commit, abort}, []string{"0:a0", "0:a1"}},
		{"nothing but aborts", []kgo.TransactionEndTry{abort, abort}, nil},
	} {
		runOnKafka(t, c.name, func(t *testing.T, k *kafka) {
			cl := k.client(t, kgo.TransactionalID("tx"))
			for i, end := range c.ends {
				name := string(rune('a' + i))
				k.inTransaction(t, cl, &end, name+"0", name+"1")
			}
			start := time.Now()
			k.wantRead(t, "one.dlq", Filter{}, Cursor{}, c.want...)
			if took := time.Since(start); took >= idleLimit {
				t.Errorf("it took %s, want the end to be seen at once", took)
			}
		})
	}
}

func TestRead_AwaitsATransactionAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		runOnKafka(t, fmt.Sprint(end), func(t *testing.T, k *kafka) {
			cl := k.client(t, kgo.TransactionalID("tx"))
			k.fill(t, "one.dlq", 0, 1)
			k.inTransaction(t, cl, nil, "open")
			k.fill(t, "one.dlq", 0, 1) // acknowledged, behind the transaction
			ended := make(chan error, 1)
			go func() {
				time.Sleep(20 * time.Second)
				ended <- cl.EndTransaction(t.Context(), end)
			}()
			got, errs := k.read(t.Context(), "one.dlq", Filter{}, Cursor{})
			want := []string{"0:0", "0:0"}
			if end == kgo.TryCommit {
				want = []string{"0:0", "0:open", "0:0"}
			}
			check(t, got, errs, want...)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRead_OmitsLettersBehindAnAbortedEnd(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		cl := k.client(t, kgo.TransactionalID("tx"))
		k.fill(t, "one.dlq", 0, 1)
		k.inTransaction(t, cl, nil, "open") // the end is behind this one
		ended := make(chan error, 1)
		go func() {
			time.Sleep(3 * time.Second)
			err := writeSync(t.Context(), NewWriter(k.cl, "one.dlq"), &kgo.Record{Value: []byte("late")}, headers.Meta{})
			ended <- errors.Join(err, cl.EndTransaction(t.Context(), kgo.TryAbort))
		}()
		k.wantRead(t, "one.dlq", Filter{}, Cursor{}, "0:0")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRead_YieldsNothingTwiceAfterDataLoss(t *testing.T) {
	t.Parallel()
	s := span{at: 5, end: 9}
	for _, c := range []struct {
		offset int64
		want   bool
	}{{3, false}, {4, false}, {5, true}, {5, false}, {7, true}, {6, false}} {
		if got := s.take(&kgo.Record{Offset: c.offset}); got != c.want {
			t.Errorf("offset %d is read: %v, want %v", c.offset, got, c.want)
		}
	}
}

func TestRead_NamesAStalledPartitionAndReadsOthers(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 1)
		k.fill(t, "orders.dlq", 1, 2)
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		start := time.Now()
		got, errs := k.read(t.Context(), "orders.dlq", Filter{}, Cursor{})
		check(t, got, nil, "0:0")
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "partition 1 delivered nothing between offset 0 and its end at 2") {
			t.Errorf("errors = %v, want one about partition 1", errs)
		}
		if took := time.Since(start); took < stallLimit || took > 2*stallLimit {
			t.Errorf("it took %s, want about %s", took, stallLimit)
		}
	})
}

func TestRead_NamesATransactionThatNeverEnds(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		cl := k.client(t, kgo.TransactionalID("tx"), kgo.TransactionTimeout(10*time.Minute))
		k.fill(t, "one.dlq", 0, 2)
		k.inTransaction(t, cl, nil, "open")
		got, errs := k.read(t.Context(), "one.dlq", Filter{}, Cursor{})
		check(t, got, nil, "0:0", "0:1")
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "open since offset 2") {
			t.Errorf("errors = %v, want one about the transaction", errs)
		}
	})
}

func TestRead_SlowReceiverIsNoStall(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(3) {
			k.fill(t, "orders.dlq", p, 2)
		}
		n := 0
		for _, err := range Read(t.Context(), "orders.dlq", Filter{}, Cursor{}, k.opts(kgo.FetchMaxBytes(1))...) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			time.Sleep(10 * stallLimit)
		}
		if n != 6 {
			t.Errorf("read %d letters, want 6", n)
		}
	})
}

func TestRead_SkipsExpiredLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 6)
		from := k.freeze(t, "one.dlq")
		for _, c := range []struct {
			expired int64
			want    []string
		}{{2, []string{"0:2", "0:3", "0:4", "0:5"}}, {6, nil}} {
			k.deleteTo(t, "one.dlq", 0, c.expired)
			for _, cursor := range []Cursor{{}, from} {
				k.wantRead(t, "one.dlq", Filter{}, cursor, c.want...)
			}
		}
	})
}

func TestRead_EndsThoughItsLettersExpireMeanwhile(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 6)
		// All letters expire after the bounds were read and before the first fetch, and no letter
		// follows them.
		expired := false
		k.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			if !expired {
				expired = true
				k.SleepControl(func() {
					if err := k.DeleteRecords("one.dlq", 0, 6); err != nil {
						t.Error(err)
					}
				})
			}
			return nil, nil, false
		})
		start := time.Now()
		k.wantRead(t, "one.dlq", Filter{}, Cursor{})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s to see that nothing is left", took)
		}
	})
}

func TestRead_ContinuesAtItsCursor(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		var want []string
		for p := range int32(3) {
			k.fill(t, "orders.dlq", p, 5)
			for i := range 5 {
				want = append(want, fmt.Sprintf("%d:%d", p, i))
			}
		}
		cursor := k.freeze(t, "orders.dlq")
		k.fill(t, "orders.dlq", 0, 5) // later ones
		var got []string
		for pages := 0; !cursor.Done(); pages++ {
			if pages > 8 {
				t.Fatalf("still not done after %d pages: %s", pages, cursor)
			}
			// Each page through the text form, as a tool would.
			var err error
			if cursor, err = ParseCursor(cursor.String()); err != nil {
				t.Fatal(err)
			}
			n := 0
			for l, err := range Read(t.Context(), "orders.dlq", Filter{}, cursor, k.opts()...) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d:%s", l.Record.Partition, l.Record.Value))
				cursor.Advance(l)
				if n++; n == 2 {
					break
				}
			}
		}
		slices.Sort(got)
		check(t, got, nil, want...)
	})
}

func TestRead_RefusesTheCursorOfAnotherTopic(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 2)
		for _, c := range []struct {
			topic  string
			cursor Cursor
			want   string
		}{
			{"one.dlq", Cursor{Topic: "orders.dlq"}, `the cursor is of topic "orders.dlq"`},
			{"one.dlq", Cursor{End: map[int32]int64{0: 3}}, "was the topic recreated?"},
			{"one.dlq", Cursor{At: map[int32]int64{0: 3}}, "was the topic recreated?"},
			{"one.dlq", Cursor{At: map[int32]int64{0: -1}}, "the cursor is at -1"},
			{"one.dlq", Cursor{End: map[int32]int64{4: 0}}, "partition 4, which the topic does not have"},
			{"one.dlq", Cursor{At: map[int32]int64{4: 0}}, "partition 4, which the topic does not have"},
			{"none.dlq", Cursor{}, "does not exist"},
			{"", Cursor{}, "the topic name is empty"},
		} {
			got, errs := k.read(t.Context(), c.topic, Filter{}, c.cursor)
			if len(got) > 0 || len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("%q from %s: read %q, errors %v; want none and %q", c.topic, c.cursor, got, errs, c.want)
			}
		}
	})
}

func TestRead_ClosesItsClientWhenTheLoopEnds(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 5)
		var closed closings
		for _, err := range Read(t.Context(), "one.dlq", Filter{}, Cursor{}, k.opts(kgo.WithHooks(&closed))...) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		// The client that asks for the bounds reads, too.
		if closed.n != 1 {
			t.Errorf("%d clients were closed, want 1", closed.n)
		}
	})
}

type closings struct{ n int }

func (c *closings) OnClientClosed(*kgo.Client) { c.n++ }

func TestRead_CancelledSaysSo(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		cl := k.client(t, kgo.TransactionalID("tx"))
		k.inTransaction(t, cl, nil, "open") // or the read would end
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		start := time.Now()
		got, errs := k.read(ctx, "one.dlq", Filter{}, Cursor{})
		if len(got) > 0 || len(errs) != 1 || !errors.Is(errs[0], cause) {
			t.Errorf("read %q, errors %v; want the cause of the end", got, errs)
		}
		if took := time.Since(start); took > 3*time.Second+100*time.Millisecond {
			t.Errorf("it ended after %s, want no more than 3s", took)
		}
	})
}

func TestRead_OptionsCannotChangeWhatIsRead(t *testing.T) {
	t.Parallel()
	for i, opt := range []kgo.Opt{
		kgo.ConsumeTopics("orders.dlq"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders.dlq": {0: kgo.NewOffset()}}),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	} {
		runOnKafka(t, fmt.Sprint(i), func(t *testing.T, k *kafka) {
			cl := k.client(t, kgo.TransactionalID("tx"))
			k.fill(t, "orders.dlq", 0, 2)
			k.fill(t, "one.dlq", 0, 1)
			k.inTransaction(t, cl, nil, "aborted")
			time.AfterFunc(3*time.Second, func() {
				if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
					t.Error(err)
				}
			})
			got := collect(t, Read(t.Context(), "one.dlq", Filter{}, Cursor{}, k.opts(opt)...))
			if len(got) != 1 || got[0].Record.Topic != "one.dlq" || string(got[0].Record.Value) != "0" {
				t.Errorf("read %v, want the letter of one.dlq", got)
			}
		})
	}
}

func TestRead_UnfitOptionsAreItsError(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 1)
		for _, opt := range []kgo.Opt{kgo.SeedBrokers(), kgo.ConsumerGroup("g"), kgo.ConsumeRegex()} {
			n := 0
			for l, err := range Read(t.Context(), "one.dlq", Filter{}, Cursor{}, k.opts(opt)...) {
				if n++; l != nil || err == nil {
					t.Errorf("read %v, %v; want an error", l, err)
				}
			}
			if n != 1 {
				t.Errorf("yielded %d times, want one error", n)
			}
		}
	})
}

// The clients that are made from one of kgo's options write to its value. The race detector fails
// this test.
func TestRead_OptionsMayBeSharedConcurrently(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		opts := k.opts(kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()))
		var discarded atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				n := 0
				for _, err := range Read(t.Context(), "orders.dlq", Filter{}, Cursor{}, opts...) {
					if err != nil {
						t.Error(err)
					}
					n++
				}
				if n != 2 {
					t.Errorf("read %d letters, want 2", n)
				}
			})
			wg.Go(func() {
				l := NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
				if err := l.Read(t.Context(), nil, nil); err != nil {
					t.Error(err)
				}
				n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ann", Why: "test"})
				if err != nil {
					t.Error(err)
				}
				discarded.Add(n)
			})
		}
		wg.Wait()
		// The second one may find that the first has done all.
		if n := discarded.Load(); n < 2 {
			t.Errorf("discarded %d letters, want both", n)
		}
	})
}

package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

func TestPlan_RefusesRunsThatWouldGoWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*testing.T, *consumertest.Kafka, *switched)
		s      redrive.Selection
		want   redrive.Refusal
		says   string
	}{
		"a filter that nothing fits": {s: redrive.Selection{Filter: dlq.Filter{Classes: []string{"other"}}}, want: redrive.RefusedNothing, says: "no open letter fits"},
		"a ledger with fewer partitions than the letters'": {
			before: func(_ *testing.T, k *consumertest.Kafka, _ *switched) {
				k.DeleteTopic("orders.dlq.ledger")
				k.CreateTopic("orders.dlq.ledger", 1)
				k.DeleteTopic("orders.dlq")
				k.CreateTopic("orders.dlq", 2)
				k.Produce(&kgo.Record{Topic: "orders.dlq"})
			},
			s: redrive.Selection{Target: redrive.Target{Topic: "orders"}}, want: redrive.RefusedPartitions,
			says: "orders.dlq.ledger has 1 partitions, and orders.dlq has 2: grow the ledger",
		},
		"a group that has no tiers": {
			before: func(t *testing.T, k *consumertest.Kafka, s *switched) {
				s.stop(t)
				forgetGroup(t, k)
			},
			want: redrive.RefusedNoTier, says: "no retry topic of orders that this user may see has a committed offset of group billing on partition 0, billing on partition 1: grant READ and WRITE on its retry topics",
		},
		"a compacted target": {
			before: func(t *testing.T, k *consumertest.Kafka, _ *switched) {
				alter(t, k, "orders", "cleanup.policy", "compact")
			},
			s: redrive.Selection{Target: redrive.Target{Topic: "orders"}}, want: redrive.RefusedCompacted, says: "orders is compacted",
		},
		"old timestamps": {
			before: func(t *testing.T, k *consumertest.Kafka, _ *switched) {
				alter(t, k, "orders", "retention.ms", "3600000")
				time.Sleep(2 * time.Hour)
			},
			s: redrive.Selection{Target: redrive.Target{Topic: "orders", KeepTimestamp: true}}, want: redrive.RefusedRetention, says: "orders keeps records for 1h",
		},
		"records that were brought back too often": {
			s: redrive.Selection{MaxRedrives: 1}, want: redrive.RefusedTooOften, says: "all reached the limit of redrives",
			before: func(t *testing.T, k *consumertest.Kafka, _ *switched) {
				r := redriver(t, k)
				for {
					p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", MaxRedrives: 1})
					if err != nil {
						return
					}
					if _, err := r.Run(t.Context(), p, ann(redrive.Pace{Tolerate: 100, Canary: -1}, nil)); err != nil {
						t.Error(err)
					}
				}
			},
		},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			k.CreateTopic("orders", 2)
			var s switched
			s.set(failing("tax"))
			s.run(k)
			for _, r := range k.Produce(&kgo.Record{Topic: "orders", Partition: 0, Key: []byte("a"), Value: []byte("{}")}, &kgo.Record{Topic: "orders", Partition: 1, Key: []byte("b"), Value: []byte("{}")}) {
				k.DeadLettered(r, "terminal")
			}
			if c.before != nil {
				c.before(t, k, &s)
			}
			c.s.Topic = "orders.dlq"
			_, err := redriver(t, k).Plan(t.Context(), c.s)
			refused(t, err, c.want, c.says)
		})
	}
}

func TestPlan_NamesBadInput(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		r := redriver(t, k)
		for want, s := range map[string]redrive.Selection{
			`"orders" is not the dead-letter topic`:   {Topic: "orders"},
			`topic "bills.dlq" does not exist`:        {Topic: "bills.dlq"},
			`header "dlq-group" can't be set`:         {Topic: "orders.dlq", Edit: redrive.Edit{Set: []kgo.RecordHeader{{Key: "dlq-group"}}}},
			`Edit.Patch: the patch is no JSON object`: {Topic: "orders.dlq", Edit: redrive.Edit{Patch: []byte("[]")}},
		} {
			if _, err := r.Plan(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		}
		_, resumed := r.Resume(t.Context(), "orders.dlq", "none", ann(redrive.Pace{}, nil))
		for _, err := range []error{r.Abort(t.Context(), "orders.dlq", "none", byAnn), resumed} {
			if err == nil || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("a run of a topic that is not there: %v", err)
			}
		}
	})
}

// An operator wants to see what a run would do before the consumer is deployed again.
func TestPlan_IsWholeWithoutMembersOfItsGroup(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 2, nil)
		s.stop(t)
		r := redriver(t, k)
		p := plan(t, r)
		if want := []string{"no consumer would run the records: billing without members; a run is refused until they are there, unless it waits"}; p.Letters != 2 || !slices.Equal(p.Warnings, want) {
			t.Errorf("%d letters, it warns %q, want %q", p.Letters, p.Warnings, want)
		}
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		refused(t, err, redrive.RefusedNoMembers, "billing without members")
		if e, ok := errors.AsType[*redrive.RefusedError](err); ok && !slices.Equal(e.Groups, []string{"billing"}) {
			t.Errorf("it is refused for the groups %q", e.Groups)
		}
	})
}

// The operator who forces a run knows that, but another person may read the plan.
func TestPlan_WarnsWhenItIsForced(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 2, nil)
		alter(t, k, "orders", "cleanup.policy", "compact,delete")
		p, err := redriver(t, k).Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders", Force: true}})
		if want := []string{"orders is compacted: an old value would become the latest of its key"}; err != nil || !slices.Equal(p.Warnings, want) {
			t.Errorf("%v, it warns %q, want %q", err, p.Warnings, want)
		}
	})
}

// An entry that cannot be read may be about a redriven letter. A plan must not ignore that.
func TestPlan_NamesLettersWithUnreadableEntries(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, nil)
		r := redriver(t, k)
		if p := plan(t, r); len(p.Warnings) != 0 {
			t.Errorf("of a ledger that is whole it warns %q", p.Warnings)
		}
		// is about no letter
		k.Produce(&kgo.Record{Topic: "orders.dlq.ledger", Key: []byte("foo"), Value: []byte("bar")})
		for offset := range 12 {
			k.Produce(&kgo.Record{Topic: "orders.dlq.ledger", Key: fmt.Append(nil, offset), Value: []byte(`{"v":1,"sta`)})
		}
		for want, ranges := range map[string][]dlq.Range{
			"the entries of 12 of the letters in orders.dlq.ledger can't be read, so these letters may be redriven a second time: orders.dlq/0/0, ": nil,
			"orders.dlq/0/9 and 2 more; ":          nil,
			"the entries of 1 of the letters":      {dlq.At(0, 11), dlq.At(0, 12)},
			"a second time: orders.dlq/0/11; find": {dlq.At(0, 11), dlq.At(0, 12)},
		} {
			p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: ranges}})
			if err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], want) {
				t.Errorf("%v: %v, it warns %q, want %q", ranges, err, p.Warnings, want)
			}
		}
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 15)}}})
		if err != nil || len(p.Warnings) != 0 {
			t.Errorf("of a letter whose entry can be read: %v, it warns %q", err, p.Warnings)
		}
	})
}

// received are the records that a handler got, by value.
type received struct {
	mu  sync.Mutex
	all []*kgo.Record
}

func (s *received) take(_ context.Context, r *kgo.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
	return nil
}

// Letters of orders were imported into the dead-letter topic of payments. The refusal said that
// none named its group, and all did.
func TestPlan_CountsLettersOfAnotherSourceApart(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, succeeding)
		k.CreateTopic("payments", 1)
		k.CreateTopic("payments.dlq", 1)
		k.CreateTopic("payments.dlq.ledger", 1)
		for _, r := range on(t, k, "orders.dlq") {
			k.Produce(&kgo.Record{Topic: "payments.dlq", Value: r.Value, Headers: r.Headers})
		}
		r := redriver(t, k)
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "payments.dlq"})
		refused(t, err, redrive.RefusedNothing, "3 letters fit, of another source topic than payments: export them")
		k.Produce(&kgo.Record{Topic: "payments.dlq"})
		_, err = r.Plan(t.Context(), redrive.Selection{Topic: "payments.dlq"})
		refused(t, err, redrive.RefusedNothing, "4 letters fit: 1 without a group, and 3 of another source topic than payments: ")
	})
}

// The group lives, and no member of it reads a letter's lane: its consumer has another topic now,
// or the source was recreated with fewer partitions. The run sent the letters where no consumer
// reads, and the plan had no warning.
func TestPlan_WarnsOfLanesThatNoMemberHas(t *testing.T) {
	t.Parallel()
	virtual(t, "another topic", func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		if len(p.Warnings) > 0 {
			t.Errorf("it warns %q while its lane is read", p.Warnings)
		}
		k.CreateTopic("payments", 1)
		s.stop(t)
		k.Run(consumer.Config{Group: "billing", Topics: []string{"payments"}, Handler: succeeding})
		time.Sleep(time.Minute)
		want := "no consumer would run 20 of the records: no member has the partitions orders/0 of group billing; "
		if p := plan(t, r); len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], want) {
			t.Errorf("it warns %q, want %q", p.Warnings, want)
		}
	})
	virtual(t, "fewer partitions", func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		s := &switched{}
		s.set(failing("tax"))
		s.run(k)
		for p := range int32(2) {
			k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Partition: p, Value: []byte("{}")})[0], "terminal")
		}
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		time.Sleep(2 * time.Minute)
		r := redriver(t, k)
		want := "1 letter stays: orders has no partition beyond 0, and orders.dlq/1/0 needs one; add partitions to it, name a target topic that has enough, or discard them"
		if p := plan(t, r); p.Letters != 1 || len(p.Warnings) != 1 || p.Warnings[0] != want {
			t.Errorf("of %d letters it warns %q, want %q", p.Letters, p.Warnings, want)
		}
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{dlq.At(1, 0)}}})
		refused(t, err, redrive.RefusedPartitions, "1 letter fits, and orders has no partition beyond 0, and orders.dlq/1/0 needs one")
	})
}

// After its source shrank, a run sent letters into lanes that no consumer can ever have. They
// stayed pending for ever, and no verb brought them back.
func TestPlan_NoLetterGoesIntoALaneThatCannotExist(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		m, s := newMixture(t, k), &switched{}
		s.set(succeeding)
		s.run(k)
		for i := range int32(9) {
			m.put("x", dead("x", i%3, i%3, int64(i/3)))
		}
		nth := func(offset int64) redrive.Selection {
			return redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Match: func(l *dlq.Letter) bool { return l.Record.Offset == offset }}}
		}
		r := redriver(t, k)
		before := elsewhere(t, planOf(t, r, nth(0)))
		left := planOf(t, r, nth(1))
		stopped(t, r, left, redrive.Pace{}, 0)
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		time.Sleep(2 * time.Minute)
		gone := redrive.Counts{Succeeded: 1, Skipped: map[string]int64{redrive.SkippedNoPartition: 2}}
		t.Log("a run that is resumed")
		ends(t, gone)(r.Resume(within(t, time.Hour), "orders.dlq", left.ID, ann(redrive.Pace{}, nil)))
		t.Log("a plan that was stored")
		var said []string
		ends(t, gone)(r.Run(within(t, time.Hour), before, ann(redrive.Pace{}, func(e redrive.Event) {
			if strings.HasPrefix(e.Message, "warning: ") {
				said = append(said, e.Message)
			}
		})))
		if len(said) != 1 || !strings.HasPrefix(said[0], "warning: 2 letters stay: orders has no partition beyond 0") {
			t.Errorf("it says %q", said)
		}
		t.Log("a new plan, and one to the source")
		for _, to := range []string{"", "orders"} {
			again := nth(2)
			again.Target.Topic = to
			if p := planOf(t, r, again); p.Letters != 1 || p.Skipped[redrive.SkippedNoPartition] != 2 {
				t.Errorf("to %q it has %d letters, and skips %v", to, p.Letters, p.Skipped)
			}
		}
		if got := states(t, k); got[dlq.Succeeded] != 2 || got[""] != 7 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// One forged letter refused every plan without a filter. Letters with damaged headers were called
// letters without a group, and the summary counted others as damaged.
func TestPlan_JudgesLettersOneByOne(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, succeeding)
		m := newMixture(t, k)
		m.put("forged", dead("forged", 0, 99, 100), dead("forged", 0, 0, 101, func(m *headers.Meta) { m.Group = "nobody" }))
		damaged := dead("damaged", 0, 0, 102)
		for i, h := range damaged.Headers {
			if h.Key == headers.Attempts {
				damaged.Headers[i].Value = []byte("many")
			}
		}
		m.put("damaged", damaged, &kgo.Record{Value: []byte("of another program")})
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq"})
		want := map[string]int64{redrive.SkippedNoPartition: 1, redrive.SkippedNoTier: 1, redrive.SkippedDamaged: 1, redrive.SkippedNoGroup: 1}
		if d := cmp.Diff(want, p.Skipped); p.Letters != 3 || d != "" {
			t.Errorf("it has %d letters, and skips, -want +got:\n%s", p.Letters, d)
		}
		for i, words := range []string{"orders.dlq/0/3 needs one", "as of orders.dlq/0/4", "with damaged headers, as orders.dlq/0/5", "without a group"} {
			if len(p.Warnings) != 4 || !strings.Contains(p.Warnings[i], "1 letter stays: ") || !strings.Contains(p.Warnings[i], words) {
				t.Fatalf("it warns %q", p.Warnings)
			}
		}
		sum, err := ledgerOf(k).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil || sum.Malformed != p.Skipped[redrive.SkippedDamaged] {
			t.Errorf("the summary counts %d damaged letters: %v", sum.Malformed, err)
		}
		succeeds(t, 3)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
	})
}

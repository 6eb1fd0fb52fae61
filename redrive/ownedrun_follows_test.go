package redrive_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// The letters all fail again there, into that topic's own dead-letter topic. A run that went by the
// group's offsets recorded them as succeeded.
func TestFollows_NoLetterOnAnotherTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.CreateTopic("bills", 1)
		var s switched
		s.set(failing("tax"))
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders", "bills"}, Handler: s.handle, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 30 * time.Second}}})
		k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("x")})[0], headers.ReasonTerminal)
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "bills"}})
		if err != nil || !slices.ContainsFunc(p.Warnings, func(w string) bool {
			return strings.Contains(w, "bills is neither the source topic orders nor its retry topic")
		}) {
			t.Fatalf("the plan warns of %v, %v", p, err)
		}
		stopped(t, r, p, redrive.Pace{Ramp: -1}, 1)
		if c := asked(t, k, r, p.ID).Counts; c.Sent != 1 || c.Unfollowed != 1 || c.Pending+c.Succeeded != 0 {
			t.Errorf("of a run that was interrupted the status is %+v", c)
		}
		began := time.Now()
		ends(t, redrive.Counts{Unfollowed: 1})(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if got := states(t, k); got[dlq.Unfollowed] != 1 {
			t.Errorf("the ledger says %v", got)
		}
		if c := asked(t, k, r, p.ID).Counts; c.Unfollowed != 1 || c.Pending+c.Succeeded != 0 {
			t.Errorf("of the run that is over the status is %+v", c)
		}
	})
}

// The end waits only for letters whose outcome is followed.
func TestFollows_LettersWithAGroupOnTheSource(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 5, nil)
		for range 5 {
			k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("f")})
		}
		s.set(succeeding)
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		if err != nil || !slices.ContainsFunc(p.Warnings, func(w string) bool {
			return strings.Contains(w, "outcomes of 5 of the letters will not be known: they name no group")
		}) {
			t.Fatalf("the plan warns of %v, %v", p, err)
		}
		ends(t, redrive.Counts{Succeeded: 5, Unfollowed: 5})(r.Run(t.Context(), p, ann(redrive.Pace{Ramp: -1, Window: 2 * time.Second}, nil)))
		if got := states(t, k); got[dlq.Unfollowed] != 5 || got[dlq.Succeeded] != 5 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// If some letters named no group, a resumed run treated all sent letters like them: it counted no
// failure, and left them without an outcome.
func TestFollows_TheSameLettersAfterAResume(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 5, nil)
		for range 5 {
			k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("f")})
		}
		s.set(failing("other"))
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		pace := redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second, TolerateShare: 1}
		if o := stopped(t, r, p, pace, 10); o.Counts.Sent != 10 || o.Counts.Failed != 0 {
			t.Fatalf("the run was stopped with %+v", o)
		}
		ends(t, redrive.Counts{Failed: 10})(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		if got := states(t, k); got[dlq.Failed] != 10 || got[dlq.Redriven] != 0 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// These letters get no outcome, so they stayed redriven for ever. Prune kept them, and all letters
// after them. Nor need the group run that failed on the source: a plan was refused without it, and
// a run that was to wait for members waited for ever.
func TestFollows_UnfollowedLettersDoNotBlockPrune(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"as a run writes them": false, "as runs wrote them before": true} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 20, nil).stop(t)
			k.CreateTopic("inspect", 1)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "inspect"}})
			ends(t, redrive.Counts{Unfollowed: 20})(r.Run(within(t, time.Minute), p, ann(redrive.Pace{Ramp: -1, Rate: 2, Window: time.Second}, nil)))
			if before { // a run had the same entry for all letters
				for offset := range int64(20) {
					e := dlq.Entry{State: dlq.Redriven, Run: p.ID, At: time.Now(), Target: headers.Position{Topic: "inspect", Offset: offset}}
					k.Produce(e.Record("orders.dlq.ledger", 0, offset))
				}
				if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 20 || err != nil {
					t.Errorf("%d letters are resolved, %v", n, err)
				}
			}
			if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 0 || err != nil {
				t.Errorf("once more %d letters are resolved, %v", n, err)
			}
			if found, err := readLedger(t, k).Prunable(t.Context(), time.Time{}, nil); err != nil || found.Letters != 20 || found.Pending != 0 {
				t.Errorf("prunable %+v, %v; want all 20", found, err)
			}
			ends(t, redrive.Counts{Unfollowed: 20})(asked(t, k, r, p.ID), nil)
		})
	}
}

// All letters came back while their run watched, and it was done without a failure: it took a dead
// letter without a class for a copy of its own, and counted no letter without a group.
func TestFollows_WhatIsADeadLetterAgainHasFailed(t *testing.T) {
	t.Parallel()
	bare := func(k *consumertest.Kafka) { // letters of another program
		for range 20 {
			k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "x-death", Value: []byte("1")}}})
		}
	}
	again := func(t *testing.T, k *consumertest.Kafka) { // that program fails them again
		cl, ctx := clientOf(t, k, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), t.Context()
		go func() {
			for ctx.Err() == nil {
				cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					if metaOf(t, r).Redrive.ID != "" {
						cl.ProduceSync(ctx, &kgo.Record{Topic: "orders.dlq", Value: r.Value, Headers: r.Headers})
					}
				})
			}
		}()
	}
	for name, c := range map[string]struct {
		pace  redrive.Pace
		play  func(*testing.T, *consumertest.Kafka)
		cause string
		sent  int64 // at most
	}{
		"without a group, as the consumer writes it": {redrive.Pace{}, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1, failing("tax"))
			bare(k)
		}, "failed again with tax", 1},
		"without a group, in a retry topic": {redrive.Pace{}, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1, func(context.Context, *kgo.Record) error { return errBusy })
			bare(k)
		}, "waits in orders.retry.5s", 1},
		"without a group, as another program writes it": {redrive.Pace{}, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1, succeeding)
			bare(k)
			again(t, k)
		}, "failed again with no class", 1},
		"with a group, as another program writes it": {redrive.Pace{Rate: 2, Ramp: -1}, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 20, succeeding)
			again(t, k)
		}, "failed again with no class", 2},
		"by their share": {redrive.Pace{Canary: -1, Rate: 2, Ramp: -1}, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1, failing("tax"))
			bare(k)
		}, "6 of the last 6 letters failed again", 12},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			c.play(t, k)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}, Filter: dlq.Filter{Match: func(l *dlq.Letter) bool {
				return l.Meta.Group == "" || name == "with a group, as another program writes it"
			}}})
			o, err := r.Run(within(t, 10*time.Minute), p, ann(c.pace, nil))
			abortedAgain(t, o, err, c.cause)
			if n := o.Counts; n.Sent > c.sent || n.Failed+n.Unfollowed+n.Pending+n.Succeeded != n.Sent || n.Failed == 0 && !strings.Contains(c.cause, "waits") {
				t.Errorf("the counts are %+v", n)
			}
			if got := states(t, k); int64(got[dlq.Failed]) != o.Counts.Failed {
				t.Errorf("the run counts %d failures, and the ledger says %v", o.Counts.Failed, got)
			}
		})
	}
}

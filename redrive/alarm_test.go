package redrive_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// Each case without a reason to abort stands beside a case with one that differs in one thing.
func TestAlarm_FiresOnFirstFailuresOfNewTraffic(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		topic  string
		change func(*headers.Meta)
		aborts bool
	}{
		"a first failure, in a tier":           {"orders.retry.5s", func(*headers.Meta) {}, true},
		"a first failure, dead at once":        {"orders.dlq", func(*headers.Meta) {}, true},
		"one that failed first before the run": {"orders.retry.30s", func(m *headers.Meta) { m.Attempts = 2 }, false},
		"one that comes to rest":               {"orders.dlq", func(m *headers.Meta) { m.Attempts = 3 }, false},
		"a held follower":                      {"orders.retry.5s", func(m *headers.Meta) { m.Held = true }, false},
		"another group's":                      {"orders.retry.5s", func(m *headers.Meta) { m.Group = "audit" }, false},
		"another class":                        {"orders.retry.5s", func(m *headers.Meta) { m.Class = "sku" }, false},
		"another fault without a class":        {"orders.retry.5s", func(m *headers.Meta) { m.Class, m.Fingerprint = "unclassified", "ffffffffffffffff" }, false},
		"the same fault without a class":       {"orders.retry.5s", func(m *headers.Meta) { m.Class = "unclassified" }, true},
		"what another run brought back": {"orders.retry.5s", func(m *headers.Meta) {
			m.Redrive = headers.Redrive{ID: "other", Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: 0}}
		}, false},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			h := takeOver(t, k, letters(t, k, 1, nil))
			h.write("orders.dlq", func() headers.Meta { m := meta(0, 50); m.Class = "unclassified"; return m }())
			r, p := planned(t, k)
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(5 * time.Second)
				h.commit("orders.retry.5s", 10)
				time.Sleep(5 * time.Second)
				m := meta(0, 100)
				if c.topic != "orders.dlq" {
					m.Reason, m.NotBefore = "", time.Now().Add(5*time.Second)
				}
				c.change(&m)
				m.Hops = m.Attempts
				h.write(c.topic, m)
			}()
			o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, nil))
			<-done
			if c.aborts {
				abortedAgain(t, o, err, "new traffic fails")
			} else {
				succeeds(t, 2)(o, err)
			}
		})
	}
}

func TestAlarm_ToleratesFailures(t *testing.T) {
	t.Parallel()
	for bad, aborts := range map[int64]bool{0: false, 3: false, 4: true} {
		virtual(t, string('0'+rune(bad)), func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 20, func(ctx context.Context, r *kgo.Record) error {
				if r.Offset >= 1 && r.Offset < 1+bad { // the canary is well
					return failing("tax")(ctx, r)
				}
				return nil
			})
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Tolerate: 3}, nil))
			if aborts {
				if seen := abortedAgain(t, o, err, "; it is failure 4, and 3 are tolerated"); len(seen) != 4 || seen[0].Letter == "" {
					t.Errorf("was seen: %+v", seen)
				}
			} else {
				ends(t, redrive.Counts{Failed: bad, Succeeded: 20 - bad})(o, err)
			}
		})
	}
}

// The cause said that the letter failed again, and the counts that no letter had: it was in a retry
// topic, and could still succeed.
func TestAlarm_SaysThatALetterIsRetried(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, func(context.Context, *kgo.Record) error { return errBusy })
		r, p := planned(t, k)
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		abortedAgain(t, o, err, "letter orders.dlq/0/0 failed again with busy, and waits in orders.retry.30s for its next attempt")
		if c := o.Counts; c.Failed != 0 || c.Retrying != 1 {
			t.Errorf("the counts are %+v", c)
		}
	})
}

// During the canary no failure is tolerated, whatever its class. Later, so few failures of other
// classes are no reason to abort.
func TestAlarm_FiresOnAnyClassInTheCanary(t *testing.T) {
	t.Parallel()
	for at, aborts := range map[int64]bool{0: true, 1: true, 2: false} {
		virtual(t, string('0'+rune(at)), func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 20, func(ctx context.Context, r *kgo.Record) error {
				if r.Offset == at {
					return failing("other")(ctx, r)
				}
				return nil
			})
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: 2, Tolerate: 3}, nil))
			if aborts {
				if abortedAgain(t, o, err, "; the canary tolerates no failure"); o.Counts.Sent != 2 {
					t.Errorf("%d were sent, want the canary", o.Counts.Sent)
				}
			} else {
				ends(t, redrive.Counts{Failed: 1, Succeeded: 19})(o, err)
			}
		})
	}
}

// A run that waits for its group redrives no letter meanwhile. The alarm must not blame it for not
// draining the topic.
func TestAlarm_StaysSilentWhileTheRunIsHeldBack(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var slow atomic.Bool
		slow.Store(true)
		letters(t, k, 200, func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "sku" {
				return failing("sku")(ctx, r)
			}
			if slow.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		r, p := planned(t, k)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stopped := make(chan struct{})
		// a letter every two seconds, of another class: 15 within a window, in which the group runs
		// three
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku")})
				time.Sleep(2 * time.Second)
			}
		}()
		began, behind := time.Now(), 0
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, MaxLag: 50}, func(e redrive.Event) {
			if strings.Contains(e.Waiting, "behind") {
				behind++
			}
			if slow.Load() && time.Since(began) > 2*time.Minute {
				slow.Store(false)
			}
		}))
		stop()
		<-stopped
		if c := o.Counts; err != nil || c.Succeeded != 200 || behind == 0 {
			t.Errorf("the run ended with %v, and %+v; it waited %d times", err, o, behind)
		}
	})
}

// The canary of a run passed, its 3,000 other letters failed with another class, and it ended well.
// A share of failures of any class ends it, one that is tolerated does not, and so few letters that
// they are no share do not either.
func TestAlarm_FiresOnAShareOfAnyClass(t *testing.T) {
	t.Parallel()
	after := func(canary int64) func(int64) bool { return func(offset int64) bool { return offset >= canary } }
	every := func(n int64) func(int64) bool { return func(offset int64) bool { return offset%n == n-1 } }
	type row struct {
		letters int
		pace    redrive.Pace
		fails   func(offset int64) bool
		cause   string // none: it is done
		most    int64  // that may be sent
	}
	for name, c := range cases.Some(map[string]row{
		"all but the canary":                       {1000, redrive.Pace{}, after(1), " letters failed again, of any class, where 10% of 50 are tolerated", 60},
		"all but the canary, without a rate":       {1000, redrive.Pace{Rate: -1}, after(1), " letters failed again, of any class", 1000},
		"all but the canary, of few":               {20, redrive.Pace{}, after(1), " letters failed again, of any class, where 10% of 50 are tolerated", 15},
		"all but the canary, of fewer":             {6, redrive.Pace{}, after(1), "", 6},
		"one of 20":                                {400, redrive.Pace{}, every(20), "", 400},
		"one of 20, without a rate":                {1000, redrive.Pace{Rate: -1, Ramp: -1}, every(20), "", 1000},
		"one of 5":                                 {400, redrive.Pace{}, every(5), " letters failed again, of any class", 200},
		"one of 5, and it is tolerated":            {400, redrive.Pace{TolerateShare: 0.3}, every(5), "", 400},
		"one of 5, and so many are tolerated":      {400, redrive.Pace{Tolerate: 80}, every(5), "", 400},
		"one of 5, and nearly as many are":         {400, redrive.Pace{Tolerate: 60}, every(5), " letters failed again, of any class", 399},
		"one, and none is tolerated":               {100, redrive.Pace{TolerateShare: -1, Rate: 10}, every(50), "where 0% of ", 99},
		"all but the canary, and any is tolerated": {100, redrive.Pace{TolerateShare: 1}, after(1), "", 100},
	}, "all but the canary, of few", "one, and none is tolerated") {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			failed := int64(0)
			for offset := range int64(c.letters) {
				if c.fails(offset) {
					failed++
				}
			}
			letters(t, k, c.letters, func(ctx context.Context, r *kgo.Record) error {
				if c.fails(r.Offset) {
					return failing("other")(ctx, r)
				}
				return nil
			})
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(c.pace, nil))
			if c.cause == "" {
				ends(t, redrive.Counts{Failed: failed, Succeeded: int64(c.letters) - failed})(o, err)
				return
			}
			seen := abortedAgain(t, o, err, c.cause)
			if o.Counts.Sent > c.most || len(seen) == 0 || seen[0].Class != "other" || seen[0].Letter == "" {
				t.Errorf("%d were sent, and was seen: %+v", o.Counts.Sent, seen)
			}
		})
	}
}

// A failure is seen when its copy is written, a success only when the group's offset moves. After a
// slow letter only failures are seen for a while, which must not raise their share.
func TestAlarm_CountsFailuresAndSuccessesAlike(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 400, func(ctx context.Context, r *kgo.Record) error {
			switch {
			case r.Offset == 10:
				time.Sleep(30 * time.Second)
			case r.Offset%20 == 19:
				return failing("other")(ctx, r)
			}
			return nil
		})
		r := redriver(t, k)
		ends(t, redrive.Counts{Failed: 20, Succeeded: 380})(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Ramp: -1, Rate: 20}, nil)))
	})
}

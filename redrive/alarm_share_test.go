package redrive_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// The canary of a run passed, its 3,000 other letters failed with another class, and it ended well. A share of failures of
// any class ends it, one that is tolerated does not, and so few letters that they are no share do not either.
func TestAlarm_FiresOnAShareOfAnyClass(t *testing.T) {
	t.Parallel()
	after := func(canary int64) func(int64) bool { return func(offset int64) bool { return offset >= canary } }
	every := func(n int64) func(int64) bool { return func(offset int64) bool { return offset%n == n-1 } }
	for name, c := range map[string]struct {
		letters int
		pace    redrive.Pace
		fails   func(offset int64) bool
		cause   string // none: it is done
		most    int64  // that may be sent
	}{
		"all but the canary":                       {3000, redrive.Pace{}, after(1), " letters failed again, of any class, where 10% of 50 are tolerated", 60},
		"all but the canary, without a rate":       {3000, redrive.Pace{Rate: -1}, after(1), " letters failed again, of any class", 3000},
		"all but the canary, of few":               {20, redrive.Pace{}, after(1), " letters failed again, of any class, where 10% of 50 are tolerated", 15},
		"all but the canary, of fewer":             {6, redrive.Pace{}, after(1), "", 6},
		"one of 20":                                {400, redrive.Pace{}, every(20), "", 400},
		"one of 20, without a rate":                {3000, redrive.Pace{Rate: -1, Ramp: -1}, every(20), "", 3000},
		"one of 5":                                 {400, redrive.Pace{}, every(5), " letters failed again, of any class", 200},
		"one of 5, and it is tolerated":            {400, redrive.Pace{TolerateShare: 0.3}, every(5), "", 400},
		"one of 5, and so many are tolerated":      {400, redrive.Pace{Tolerate: 80}, every(5), "", 400},
		"one of 5, and nearly as many are":         {400, redrive.Pace{Tolerate: 60}, every(5), " letters failed again, of any class", 399},
		"one, and none is tolerated":               {100, redrive.Pace{TolerateShare: -1, Rate: 10}, every(50), "where 0% of ", 99},
		"all but the canary, and any is tolerated": {100, redrive.Pace{TolerateShare: 1}, after(1), "", 100},
	} {
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
			o, err := r.Run(t.Context(), plan(t, r), c.pace, nil)
			if c.cause == "" {
				if n := o.Counts; err != nil || n.Failed != failed || n.Succeeded != int64(c.letters)-failed {
					t.Errorf("the run ended with %v, and %+v", err, o)
				}
				return
			}
			e := reappeared(t, o, err, c.cause)
			if o.Counts.Sent > c.most || len(e.Seen) == 0 || e.Seen[0].Class != "other" || e.Seen[0].Letter == "" {
				t.Errorf("%d were sent, and was seen: %+v", o.Counts.Sent, e)
			}
		})
	}
}

// A failure is seen as its copy is written, a success only as the group's offset moves. Behind a letter that takes long the
// failures are seen alone for a while, and are no larger a share for that.
func TestAlarm_CountsFailuresAndSuccessesAlike(t *testing.T) {
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
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Ramp: -1, Rate: 20}, nil)
		if c := o.Counts; err != nil || c.Failed != 20 || c.Succeeded != 380 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

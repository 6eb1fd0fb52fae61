package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// sharing: groups that consume one source.
var sharing = map[string]func(*testing.T, *fixture){
	"a copy of another group is passed over and committed, not run": func(t *testing.T, f *fixture) {
		var runs atomic.Int32
		f.Run(f.config(counting(&runs)))
		foreign := f.copyOf(0, 1, time.Now())
		foreign.Group = "another"
		f.Produce(&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: foreign.Append(nil)})
		f.committed(t, f.tierTopic(tier1), 1, 1)
		if n := runs.Load(); n != 0 {
			t.Errorf("another group's record was run %d times", n)
		}
		if n := f.count(t, f.topic+".dlq"); n != 0 {
			t.Errorf("%d dead letters, want none", n)
		}
	},
	// Each group that shared the tier dead-lettered the record: it named one of them, and its due
	// time was malformed.
	"a broken copy that names its group is dead-lettered by that group alone": func(t *testing.T, f *fixture) {
		var runs atomic.Int32
		one, two := f.config(counting(&runs)), f.config(counting(&runs))
		two.Group = f.group + "-two"
		f.Run(one)
		f.Run(two)
		h := without(f.copyOf(0, 1, time.Now()).Append(nil), headers.NotBefore)
		f.Produce(
			&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Headers: append(h[:len(h):len(h)], kgo.RecordHeader{Key: headers.NotBefore, Value: []byte("soon")})},
			&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Headers: h},
		)
		for _, group := range []string{one.Group, two.Group} {
			eventually(t, group+" has passed both", func() bool { return f.committedNow(t, group, f.tierTopic(tier1), 1) == 2 })
		}
		if n := f.count(t, f.topic+".dlq"); n != 2 || runs.Load() != 0 {
			t.Errorf("%d dead letters and %d runs of two broken copies, want 2 and none", n, runs.Load())
		}
	},
	"groups that share siblings handle their own failures only": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		attempts := map[string][]int{}
		handle := func(group string, fails int) consumer.Handler {
			return func(ctx context.Context, r *kgo.Record) error {
				n := consumer.DeliveryOf(ctx, r).Attempt
				mu.Lock()
				attempts[group] = append(attempts[group], n)
				mu.Unlock()
				if n <= fails {
					return classify.Retryable(errBusy)
				}
				return nil
			}
		}
		one, two := f.config(handle("one", 2)), f.config(handle("two", 1))
		two.Group = f.group + "-two"
		f.Run(one)
		f.Run(two)
		r := f.Produce(f.record("x"))[0]
		f.Handled(r, 2) // once by each group
		eventually(t, "each group has passed over the other's copies", func() bool {
			return f.committedNow(t, one.Group, f.tierTopic(tier1), r.Partition) == 2 && f.committedNow(t, two.Group, f.tierTopic(tier1), r.Partition) == 2 &&
				f.committedNow(t, one.Group, f.tierTopic(tier2), r.Partition) == 1 && f.committedNow(t, two.Group, f.tierTopic(tier2), r.Partition) == 1
		})
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(attempts), fmt.Sprint(map[string][]int{"one": {1, 2, 3}, "two": {1, 2}}); got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
	},
	"{group} in the naming keeps groups apart": func(t *testing.T, f *fixture) {
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return errors.New("no such SKU")
		})
		cfg.Naming = retrytopics.Naming{Retry: "{topic}.{group}.retry.{delay}", DLQ: "{topic}.{group}-dlq", Ledger: "{topic}.{group}-dlq-ledger"}
		f.Run(cfg)
		r := f.Produce(f.record("x"))[0]
		f.DeadLettered(r, headers.ReasonTerminal)
		if n := f.count(t, f.topic+"."+f.group+"-dlq"); n != 1 {
			t.Errorf("%d records in the group's own dead-letter topic, want 1", n)
		}
		if n := f.count(t, f.topic+"."+f.group+".retry.300ms"); n != 1 {
			t.Errorf("%d records in the group's own tier, want 1", n)
		}
		f.Conserved()
	},
}

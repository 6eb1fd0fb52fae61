package consumertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// reporter is a test that keeps its errors, and its cleanups for later.
type reporter struct {
	failing
	errors   []string
	cleanups []func()
}

func (r *reporter) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *reporter) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// The same error was printed twice: by Run, and at the end of the test.
func TestKafka_RunReportsAnErrorOnce(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		r := &reporter{failing: failing{TB: t}}
		k.tb = r
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.Run(consumer.Config{
				Group: "billing", Topics: []string{"orders"}, Handler: func(context.Context, *kgo.Record) error { return nil },
			})
		}()
		<-done
		for _, cleanup := range r.cleanups {
			cleanup()
		}
		k.tb = t
		if !strings.Contains(r.message, "orders") || len(r.errors) > 0 {
			t.Errorf("Run said %q and the end of the test %q, want an error about orders, and nothing", r.message, r.errors)
		}
	})
}

// Two goroutines that ended a consumer at the same time, one because a record ended it as another
// one stopped it, were a data race.
func TestConsumer_SeveralEndItAtOnce(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		c := k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Handler: func(context.Context, *kgo.Record) error { return nil },
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := c.Err(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

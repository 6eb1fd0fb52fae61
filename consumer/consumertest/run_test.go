package consumertest

import (
	"bytes"
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

// A handler decrypted its record in place, and failed: the retry topic had the plain text.
func TestKafka_NamesAHandlerThatChangesItsRecord(t *testing.T) {
	t.Parallel()
	change := map[string]consumer.Handler{
		"value":  func(_ context.Context, r *kgo.Record) error { r.Value[0]++; return nil },
		"key":    func(_ context.Context, r *kgo.Record) error { r.Key[0]++; return nil },
		"header": func(_ context.Context, r *kgo.Record) error { r.Headers[0].Value[0]++; return nil },
		"none":   func(_ context.Context, r *kgo.Record) error { r.Value = bytes.ToUpper(r.Value); return nil },
	}
	for name, h := range change {
		r := &reporter{failing: failing{TB: t}}
		rec := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("v")}}}
		if err := unchanged(r, h)(t.Context(), rec); err != nil {
			t.Error(err)
		}
		if got := strings.Join(r.errors, ""); (name == "none") != (got == "") || name != "none" && !strings.Contains(got, "NamesAHandlerThatChangesItsRecord.func") {
			t.Errorf("%s: the kit says %q", name, got)
		}
	}
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

package consumertest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// failing keeps the message of the assertion that fails.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// messageOf returns the message of an assertion that fails.
func messageOf(k *Kafka, assert func()) string {
	tb := k.tb
	f := &failing{TB: tb}
	k.tb = f
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert()
	}()
	<-done
	k.tb = tb
	return f.message
}

// A failed assertion said "no such copy … others: []", and nothing of where the record was.
func TestKafka_FailureSaysWhereTheRecordIs(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		k.CreateTopic("bills", 1)
		k.CreateTopic("parcels", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, time.Hour}, Jitter: -1, HandlerTimeout: -1},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				switch string(r.Value) {
				case "busy":
					return classify.As(classify.Retryable(errors.New("the gateway is busy")), "payment.busy")
				case "bad":
					return classify.As(classify.Terminal(errors.New("no such SKU")), "sku")
				case "double":
					return classify.As(classify.Discard(errors.New("paid before")), "double")
				case "slow":
					<-ctx.Done()
				case "panic":
					panic("nil map")
				}
				return nil
			},
		})
		records := map[string]*kgo.Record{}
		for _, value := range []string{"fine", "busy", "bad", "panic", "double"} {
			records[value] = k.Produce(&kgo.Record{Topic: "orders", Value: []byte(value)})[0]
		}
		k.Handled(records["fine"], 1)
		k.Discarded(records["double"], "double")
		k.Discarded(records["double"], "")
		k.Parked(records["busy"], time.Hour, "")
		k.Patience = 10 * time.Second
		records["slow"] = k.Produce(&kgo.Record{Topic: "orders", Value: []byte("slow")})[0]
		records["later"] = k.Produce(&kgo.Record{Topic: "orders", Value: []byte("fine")})[0]
		for name, c := range map[string]struct {
			assert func()
			want   string
		}{
			"handled, busy": {func() { k.Handled(records["busy"], 1) }, `consumertest: record orders/0/1 was handled 0 times within 10s, want 1
  the handler was called with it 2 times; the last call, attempt 2 from orders.retry.5s/0/0, returned the error: the gateway is busy
  its last copy is orders.retry.1h/0/0 (attempts 2, class payment.busy, due at 2000-01-01 01:00:0X, in X): the gateway is busy`},
			"handled, bad": {func() { k.Handled(records["bad"], 1) }, `consumertest: record orders/0/2 was handled 0 times before all was done with it, want 1
  the handler was called with it once; the last call, attempt 1 from orders/0/2, returned the error: no such SKU
  its last copy is orders.dlq/0/X (attempts 1, class sku, reason terminal): no such SKU`},
			"handled, too often": {func() {
				k.journal.handled[positionOf(records["fine"])] = 2
				k.Handled(records["fine"], 1)
			}, `consumertest: record orders/0/0 was handled 2 times, want 1
  the handler was called with it once; the last call, attempt 1 from orders/0/0, returned nil
  no copy of it is in orders.retry.5s, orders.retry.1h, orders.dlq`},
			"handled, none wanted": {
				func() { k.Handled(records["later"], 0) },
				`consumertest: Handled waits for a success, and cannot tell whether record orders/0/6 will be handled later: assert what becomes of it instead, with Discarded, DeadLettered or Parked`,
			},
			"discarded, fine": {func() { k.Discarded(records["fine"], "") }, `consumertest: record orders/0/0 was not discarded before all was done with it
  the handler was called with it once; the last call, attempt 1 from orders/0/0, returned nil
  no copy of it is in orders.retry.5s, orders.retry.1h, orders.dlq`},
			"discarded, another class": {func() { k.Discarded(records["double"], "sku") }, `consumertest: record orders/0/4 was not discarded with class "sku" before all was done with it
  the handler was called with it once; the last call, attempt 1 from orders/0/4, returned the error: paid before
  it was discarded once, class double
  no copy of it is in orders.retry.5s, orders.retry.1h, orders.dlq`},
			"handled, slow": {func() { k.Handled(records["slow"], 1) }, `consumertest: record orders/0/5 was handled 0 times within 10s, want 1
  the handler was called with it once; the last call, attempt 1 from orders/0/5, still runs
  no copy of it is in orders.retry.5s, orders.retry.1h, orders.dlq`},
			"dead-lettered, not read": {func() { k.DeadLettered(records["later"], "") }, `consumertest: no such copy of record orders/0/6 was written to orders.dlq within 10s
  the handler was not called with it
  no copy of it is in orders.retry.5s, orders.retry.1h, orders.dlq`},
			"dead-lettered, another reason": {func() { k.DeadLettered(records["panic"], headers.ReasonExhausted) }, `consumertest: no such copy of record orders/0/3 was written to orders.dlq before all was done with it
  copy orders.dlq/0/X has another content: reason "panic", want "exhausted"
  the handler was called with it once; the last call, attempt 1 from orders/0/3, panicked
  its last copy is orders.dlq/0/X (attempts 1, class panic.string, reason panic): panic: nil map`},
			"parked, no such tier": {
				func() { k.Parked(records["busy"], time.Minute, "") },
				`consumertest: topic "orders" has no tier of 1m0s; its tiers are [5s 1h0m0s]`,
			},
			"produced to no topic": {
				func() { k.Produce(&kgo.Record{Topic: "ordres"}) },
				`consumertest: produce to topic "ordres": it does not exist, or lacks the record's partition; CreateTopic makes it: UNKNOWN_TOPIC_OR_PARTITION: X`,
			},
			"handled, not produced": {
				func() { k.Handled(&kgo.Record{Topic: "orders", Value: []byte("fine")}, 1) },
				`consumertest: this record of topic "orders" was not produced, so it has no position: assert about a record that Produce returned`,
			},
			"parked, not produced": {
				func() { k.Parked(&kgo.Record{Topic: "orders"}, time.Hour, "") },
				`consumertest: this record of topic "orders" was not produced, so it has no position: assert about a record that Produce returned`,
			},
			"dead-lettered, not produced": {
				func() { k.DeadLettered(&kgo.Record{Topic: "orders"}, "") },
				`consumertest: this record of topic "orders" was not produced, so it has no position: assert about a record that Produce returned`,
			},
			"handled, nil": {
				func() { k.Handled(nil, 1) },
				`consumertest: the record is nil: assert about a record that Produce returned`,
			},
			"handled, no consumer": {
				func() { k.Handled(k.Produce(&kgo.Record{Topic: "parcels"})[0], 1) },
				`consumertest: no consumer was run on topic "parcels": Run one before an assertion about its records`,
			},
			"discarded, no consumer": {
				func() { k.Discarded(k.Produce(&kgo.Record{Topic: "parcels"})[0], "") },
				`consumertest: no consumer was run on topic "parcels": Run one before an assertion about its records`,
			},
			"not ready": {func() {
				k.Run(consumer.Config{
					Group: "invoices", Topics: []string{"bills"}, Handler: func(context.Context, *kgo.Record) error { return nil },
					Kafka: []kgo.Opt{kgo.SeedBrokers("nowhere:9092")},
				})
			}, `consumertest: the consumer was not ready within 10s
  it has not joined its group: X`},
		} {
			is := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(c.want), "X", `[^\n]+?`) + "$")
			if got := messageOf(k, c.assert); !is.MatchString(got) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
			}
		}
	})
}

// The message had (<nil>) where there was no error, and a line for each of a thousand records.
func TestKafka_ConservedSaysWhatIsMisplaced(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Handler: func(context.Context, *kgo.Record) error { return errors.New("no such SKU") },
		})
		var records []*kgo.Record
		for range 25 {
			records = append(records, &kgo.Record{Topic: "orders", Value: []byte("bad")})
		}
		k.Produce(records...)
		k.Conserved()
		for _, r := range records { // as if the handler had succeeded as well
			k.journal.handled[positionOf(r)]++
		}
		k.Patience = time.Second
		got := messageOf(k, k.Conserved)
		want := `consumertest: 25 records are not in exactly one place
orders/0/0: handled once, and dead-lettered once
  the handler was called with it once; the last call, attempt 1 from orders/0/0, returned the error: no such SKU
  its last copy is orders.dlq/0/0 (attempts 1, class unclassified, reason terminal): no such SKU
orders/0/1: `
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "no such SKU\nand 15 more") {
			t.Errorf("got\n%s\nwant it to begin\n%s", got, want)
		}
	})
}

// limited is a test with a -timeout.
type limited struct {
	testing.TB
	end time.Time
}

func (l *limited) Deadline() (time.Time, bool) { return l.end, true }

// Patience follows from the policy, also in real time. A failed assertion about a policy of hours
// said nothing, because go test ended the binary first.
func TestKafka_FailsBeforeTheTestIsOver(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, virtual *Kafka) {
		virtual.CreateTopic("orders", 1)
		end := time.Now().Add(10 * time.Minute)
		k := On(&limited{t, end}, virtual.Opts()...)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 12 * time.Hour}},
			Handler: func(context.Context, *kgo.Record) error { return classify.Retryable(errors.New("busy")) },
		})
		r := k.Produce(&kgo.Record{Topic: "orders"})[0]
		for name, assert := range map[string]func(){
			"Handled":      func() { k.Handled(r, 1) },
			"DeadLettered": func() { k.DeadLettered(r, headers.ReasonExhausted) },
		} {
			if said := messageOf(k, assert); !strings.Contains(said, "its last copy is orders.retry.") {
				t.Errorf("%s: %q", name, said)
			}
			if !time.Now().Before(end) {
				t.Errorf("%s failed %v after the test was over", name, time.Since(end))
			}
		}
	})
}

// What a test prints goes into logs of CI, where a secret has no place either.
func TestKafka_FailureShowsErrorsThroughErrorText(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]func(error) string{
		"returned the error: no card ****": func(err error) string { return strings.ReplaceAll(err.Error(), "4111111111111111", "****") },
		"Config.ErrorText panicked with a": func(err error) string { panic(err) },
	} {
		Virtual(t, func(t *testing.T, k *Kafka) {
			k.CreateTopic("orders", 1)
			k.Run(consumer.Config{
				Group: "billing", Topics: []string{"orders"}, ErrorText: text,
				Handler: func(_ context.Context, r *kgo.Record) error {
					return classify.Terminal(fmt.Errorf("no card %s", r.Value))
				},
			})
			r := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("4111111111111111")})[0]
			k.DeadLettered(r, headers.ReasonTerminal)
			got := messageOf(k, func() { k.Handled(r, 1) })
			if strings.Contains(got, "4111111111111111") || !strings.Contains(got, want) {
				t.Errorf("the failure says %q, want %q", got, want)
			}
		})
	}
}

// A body of an HTTP response in an error made the failure longer than what a terminal keeps.
func TestKafka_FailureShortensErrors(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Handler: func(context.Context, *kgo.Record) error { return errors.New("a" + strings.Repeat("é", 1<<20)) },
		})
		r := k.Produce(&kgo.Record{Topic: "orders"})[0]
		got := messageOf(k, func() { k.Handled(r, 1) })
		if want := "returned the error: a" + strings.Repeat("é", 499) + "… (2097153 bytes)\n"; !strings.Contains(got, want) || len(got) > 10_000 {
			t.Errorf("the failure has %d bytes, want %q in it; it begins with %.1500q", len(got), want, got)
		}
	})
}

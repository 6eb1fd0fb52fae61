package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheProgramPrintsWhatBecomesOfEachRecord(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, story := range [][]string{ // each in this order
		{
			"orders: attempt 1, from the source: the warehouse is down",
			"orders: attempt 2, from the 10s tier", "orders: attempt 3, from the 1m tier", "orders: attempt 4, from the 5m tier",
			`"siding: record dead-lettered" group=shop topic=orders partition=0 offset=0 attempts=4 reason=exhausted`,
		},
		{
			"payments: attempt 1, from the source: the provider is down",
			"payments: attempt 2, from the 10m tier", "payments: attempt 3, from the 2h tier", "payments: attempt 4, from the 2h tier",
			"payments: attempt 5, from the 2h tier: handled",
		},
		{
			"payments: attempt 1, from the source: a currency that does not exist",
			`"siding: the lane halts on a record that may not be skipped" group=shop topic=payments partition=1 feed=payments offset=0`,
		},
		{"mails: attempt 1, from the source: too many mails", "mails: attempt 2, from the 30m tier: handled"},
		{"clicks: attempt 1, from the source: no such campaign", `"siding: record discarded" group=shop topic=clicks`},
	} {
		rest := out.String()
		for _, want := range story {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("no %q where it belongs in:\n%s", want, out.String())
				break
			}
			rest = after
		}
	}
}

// In virtual time a due time is met to the millisecond. An idle consumer's polls over six hours
// take a minute of real time even there, so the delays are divided too, by a smaller factor.
func TestEachTopicIsTriedAsItsPolicySays(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const divide = 100
		for _, topic := range []string{orders, payments, mails, clicks} {
			k.CreateTopic(topic, 2)
		}
		cfg := configure(divide)
		cfg.Handler = (&handler{out: io.Discard, divide: divide, over: func() {}}).handle
		c := k.Run(cfg)
		// kgo needs a second for retry topics that it learns of while it loads the metadata of
		// others. Then it waits for the idle fetch in flight, with consumertest up to 5 s.
		time.Sleep(10 * time.Second)
		all := records()
		all[1].Key = []byte("customer-2") // to partition 0: partition 1's lane will halt
		k.Produce(all...)
		order, payment, puzzling, mail := all[0], all[1], all[2], all[3]

		letter := k.DeadLettered(order, headers.ReasonExhausted)
		within(t, "the order", letter.FailedAt.Sub(letter.FirstFailedAt), (6*time.Minute+10*time.Second)/divide)
		asked := k.Parked(mail, 30*time.Minute/divide, "")
		// The first tier that is at least as long as the 10 m that the mail asks for.
		within(t, "the mail", asked.NotBefore.Sub(asked.FailedAt), 30*time.Minute/divide)
		k.Handled(mail, 1)
		last := k.Parked(payment, 2*time.Hour/divide, "payment.down")
		k.Handled(payment, 1)
		within(t, "the payment", time.Since(last.FirstFailedAt), (6*time.Hour+10*time.Minute)/divide)
		for _, lane := range c.Health().Lanes {
			halted := lane.Topic == payments && lane.Partition == puzzling.Partition
			if got := lane.State == consumer.StateStopped; got != halted {
				t.Errorf("lane %s/%d is %s (%s)", lane.Topic, lane.Partition, lane.State, lane.Why)
			}
		}
	})
}

func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+500*time.Millisecond {
		t.Errorf("%s waited %v, want %v", what, got, want)
	}
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
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
			"payments: attempt 1, from the source: the provider is down",
			"payments: attempt 2, from the 1m tier", "payments: attempt 3, from the 10m tier", "payments: attempt 4, from the 1h tier",
			"payments: attempt 5, from the 4h tier: handled",
		},
		{
			"orders: attempt 1, from the source: the warehouse is down",
			"orders: attempt 2, from the 10s tier", "orders: attempt 3, from the 1m tier", "orders: attempt 4, from the 5m tier",
			`"siding: record goes to the dead-letter topic" group=shop topic=orders partition=0 offset=0 attempts=4 reason=exhausted`,
		},
		{"mails: attempt 1, from the source: too many mails", "mails: attempt 2, from the 30m tier: handled"},
		{
			"mails: attempt 1, from the source: the mailbox is full", "mails: attempt 4, from the 3h tier: the mailbox is full",
			`"siding: record discarded" group=shop topic=mails partition=1 offset=0 attempts=4 by=policy reason=exhausted`,
		},
		{"analytics: attempt 2, from the 5m tier: the loader is busy", "analytics: attempt 3, from the 1h tier: handled"},
		{
			"audit: attempt 1, from the source: an actor that does not exist",
			`"siding: the lane halts on a record that may not be skipped" group=shop topic=audit partition=0 feed=audit offset=0`,
		},
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

// In virtual time, with the delays of production, a due time is met to the millisecond.
func TestEachTopicIsTriedAsItsPolicySays(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		cfg := configure(1)
		for _, topic := range cfg.Topics {
			k.CreateTopic(topic, 2)
		}
		cfg.Handler = (&handler{out: io.Discard, divide: 1, over: func() {}}).handle
		c := k.Run(cfg)
		// kgo needs a second for retry topics that it learns of while it loads the metadata of
		// others. Then it waits for the idle fetch in flight.
		time.Sleep(10 * time.Second)
		all := records()
		k.Produce(all...)
		payment, order, mail, old, visit, entry := all[0], all[1], all[2], all[3], all[4], all[5]

		letter := k.DeadLettered(order, headers.ReasonExhausted)
		within(t, "the order", letter.FailedAt.Sub(letter.FirstFailedAt), 6*time.Minute+10*time.Second)
		asked := k.Parked(mail, 30*time.Minute, "")
		// The first tier that is at least as long as the 10 m that the mail asks for.
		within(t, "the mail", asked.NotBefore.Sub(asked.FailedAt), 30*time.Minute)
		k.Handled(mail, 1)
		last := k.Parked(visit, time.Hour, "")
		k.Handled(visit, 1)
		within(t, "the visit", time.Since(last.FirstFailedAt), time.Hour+5*time.Minute)
		last = k.Parked(payment, 4*time.Hour, "payment.down")
		k.Handled(payment, 1)
		within(t, "the payment", time.Since(last.FirstFailedAt), 5*time.Hour+11*time.Minute)
		var notes []string
		for n, err := range dlq.NewLedger("mails.dlq", "mails.dlq.ledger", k.Opts()...).DiscardNotes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			notes = append(notes, fmt.Sprintf("%d:%d after %d attempts", n.Original.Partition, n.Original.Offset, n.Attempts))
		}
		if want := fmt.Sprintf("%d:%d after 4 attempts", old.Partition, old.Offset); !slices.Equal(notes, []string{want}) {
			t.Errorf("noted are the discarded mails %q, want %q", notes, want)
		}
		for _, lane := range c.Health().Lanes {
			halted := lane.Topic == audit && lane.Partition == entry.Partition
			if got := lane.State == consumer.StateStopped; got != halted {
				t.Errorf("lane %s/%d is %s (%s)", lane.Topic, lane.Partition, lane.State, lane.Why)
			}
		}
	})
}

// docs/policies.md says what the code does, and so does the comment on the schedules. A schedule
// that the comment recommends for a topic is the one that its policy has.
func TestTheTableOfPoliciesIsTheCode(t *testing.T) {
	t.Parallel()
	page, comment := read(t, "../../docs/policies.md"), read(t, "../../retrytopics/schedules.go")
	left := policies()
	for _, cells := range table(page, "| topic |") {
		name, topic, _ := strings.Cut(cells[0], " (")
		name = strings.Trim(name, "`")
		topic = cmp.Or(strings.Trim(topic, "`)"), name)
		policy, ok := left[topic]
		if !ok {
			t.Errorf("docs/policies.md has a row for %q, which has no policy, or two rows", topic)
			continue
		}
		delete(left, topic)
		delays := policy.Delays()
		want := []string{
			"none", spelled(delays), fmt.Sprint(cmp.Or(policy.MaxAttempts, 1+len(delays))), retrytopics.FormatDelay(sum(delays)),
			ends[policy.OnExhausted], ends[policy.OnTerminal],
		}
		if policy.NoteDiscards && policy.OnExhausted == consumer.Discard {
			want[4] += ", noted"
		}
		for schedule, its := range schedules {
			if slices.Equal(its, delays) {
				want[0] = "`" + schedule + "`"
			}
			row := regexp.MustCompile(`(?m)^//\t` + schedule + ` .*\b` + name + `\b`)
			if got := row.MatchString(comment); got != slices.Equal(its, delays) {
				t.Errorf("schedules.go recommends %s for %s: %v, the policy has %s", schedule, name, got, spelled(delays))
			}
		}
		if got := cells[2:8]; !slices.Equal(got, want) {
			t.Errorf("docs/policies.md: %s has %q, the code %q", topic, got, want)
		}
	}
	for topic := range left {
		t.Errorf("docs/policies.md has no row for %s", topic)
	}
}

var (
	ends      = map[consumer.Disposition]string{consumer.DeadLetter: "dead letter", consumer.Discard: "discard", consumer.Stop: "stop"}
	schedules = map[string][]time.Duration{
		"Default": retrytopics.Default, "Aggressive": retrytopics.Aggressive, "Standard": retrytopics.Standard,
		"Patient": retrytopics.Patient, "Cautious": retrytopics.Cautious,
	}
)

// table returns the cells of the rows of the page's table with that head.
func table(page, head string) (rows [][]string) {
	_, rest, _ := strings.Cut(page, "\n"+head)
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			return rows
		case strings.HasPrefix(line, "| "):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func spelled(delays []time.Duration) string {
	var words []string
	for _, d := range delays {
		words = append(words, retrytopics.FormatDelay(d))
	}
	return cmp.Or(strings.Join(words, " "), "none")
}

func sum(delays []time.Duration) (all time.Duration) {
	for _, d := range delays {
		all += d
	}
	return all
}

func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+500*time.Millisecond {
		t.Errorf("%s waited %v, want %v", what, got, want)
	}
}

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
			"payments: attempt 2, from the 2s tier", "payments: attempt 3, from the 10s tier", "payments: attempt 4, from the 1m tier",
			"payments: attempt 5, from the 1m tier: handled",
		},
		{
			"orders: attempt 1, from the source: the warehouse is down",
			"orders: attempt 2, from the 5s tier", "orders: attempt 3, from the 5m tier",
			`"siding: record goes to the dead-letter topic" group=shop topic=orders partition=0 offset=0 attempts=3 reason=exhausted`,
		},
		{"mails: attempt 1, from the source: too many mails", "mails: attempt 2, from the 30s tier: handled"},
		{
			"mails: attempt 1, from the source: the mailbox is full", "mails: attempt 3, from the 30s tier: the mailbox is full",
			`"siding: record goes to the dead-letter topic" group=shop topic=mails partition=1 offset=0 attempts=3 reason=exhausted`,
		},
		{
			"analytics: attempt 1, from the source: the loader is busy",
			`"siding: record goes to the dead-letter topic" group=shop topic=analytics partition=0 offset=0 attempts=1 reason=exhausted`,
		},
		{
			"audit: attempt 1, from the source: the store is down", "audit: attempt 2, from the 1s tier", "audit: attempt 3, from the 10s tier",
			"audit: attempt 4, from the 1m tier", "audit: attempt 5, from the 10m tier: handled",
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
		payment, order, mail, full, visit, entry := all[0], all[1], all[2], all[3], all[4], all[5]

		letter := k.DeadLettered(visit, headers.ReasonExhausted)
		within(t, "the visit", letter.FailedAt.Sub(letter.FirstFailedAt), 0)
		letter = k.DeadLettered(full, headers.ReasonExhausted)
		within(t, "the mailbox", letter.FailedAt.Sub(letter.FirstFailedAt), time.Minute)
		asked := k.Parked(mail, 30*time.Second, "")
		// No tier is as long as the 10 m that the mail asks for.
		within(t, "the mail", asked.NotBefore.Sub(asked.FailedAt), 10*time.Minute)
		last := k.Parked(payment, time.Minute, "payment.down")
		k.Handled(payment, 1)
		within(t, "the payment", time.Since(last.FirstFailedAt), 2*time.Minute+12*time.Second)
		letter = k.DeadLettered(order, headers.ReasonExhausted)
		within(t, "the order", letter.FailedAt.Sub(letter.FirstFailedAt), 5*time.Minute+5*time.Second)
		k.Handled(mail, 1)
		last = k.Parked(entry, 10*time.Minute, "")
		k.Handled(entry, 1)
		within(t, "the entry", time.Since(last.FirstFailedAt), 11*time.Minute+11*time.Second)
		for _, lane := range c.Health().Lanes {
			if lane.State == consumer.StateStopped {
				t.Errorf("lane %s/%d is %s (%s)", lane.Topic, lane.Partition, lane.State, lane.Why)
			}
		}
	})
}

// What a policy does with the last failure, what the server's configuration says of the topic, and
// the page's table were three opinions: payments waited for 17 h, mails were dropped, and no rule
// brought any back. This holds the three together.
func TestTheTableOfPoliciesIsTheCodeAndTheServers(t *testing.T) {
	t.Parallel()
	page, config, rules := read(t, "../../docs/policies.md"), read(t, "serve.yaml"), read(t, "rules.yaml")
	left, said := policies(), map[string][]string{}
	const head = "topic | at stake | attempts | delays | exhausted after | exhausted | terminal | criticality | brought back by"
	for _, cells := range table(page, "| "+head) {
		name, topic, _ := strings.Cut(cells[0], " (")
		name = strings.Trim(name, "`")
		topic = cmp.Or(strings.Trim(topic, "`)"), name)
		policy, ok := left[topic]
		if !ok {
			t.Errorf("docs/policies.md has a row for %q, which has no policy, or two rows", topic)
			continue
		}
		delete(left, topic)
		delays := waits(policy)
		want := []string{
			fmt.Sprint(1 + len(delays)), spelled(delays), retrytopics.FormatDelay(sum(delays)),
			ends[policy.OnExhausted], ends[policy.OnTerminal], "none", "nobody: there is no letter",
		}
		if policy.OnExhausted == consumer.DeadLetter {
			is := regexp.MustCompile(`(?m)^  - {match: ` + topic + `\.dlq, criticality: (\w+), manual-only: (true|false)}$`).FindStringSubmatch(config)
			if is == nil {
				t.Errorf("serve.yaml has no line for %s.dlq", topic)
				continue
			}
			rule := regexp.MustCompile(`(?m)^  - {name: ([\w-]+), topics: ` + topic + `\.dlq, `).FindStringSubmatch(rules)
			want[5], want[6] = is[1], "operators; no rule yet"
			switch manual := is[2] == "true"; {
			case manual && rule != nil:
				t.Errorf("serve.yaml has manual-only: true for %s.dlq, and rules.yaml a rule for it", topic)
			case manual:
				want[6] = "operators only"
			case rule != nil:
				want[6] = "operators, and the rule `" + rule[1] + "`"
			}
		}
		said[topic] = cells[len(cells)-2:]
		if got := cells[2:]; !slices.Equal(got, want) {
			t.Errorf("docs/policies.md: %s has %q, the code %q", topic, got, want)
		}
	}
	for topic := range left {
		t.Errorf("docs/policies.md has no row for %s", topic)
	}
	lines := strings.Count(config, "  - {match: ") + strings.Count(rules, "  - {name: ")
	if all := strings.Count(config, "match:") + strings.Count(rules, "topics:"); lines != 6 || all != lines {
		t.Errorf("serve.yaml and rules.yaml have %d lines of topics, and %d in all; want 6", lines, all)
	}
	// What the teams agreed on: attempts, the first wait and the longest one, and who brings
	// letters back.
	for topic, want := range map[string]string{
		payments: "5 2s 1m critical, operators only", orders: "3 5s 5m high, operators; no rule yet", mails: "3 30s 30s normal, operators, and the rule `mail-gateway`",
		analytics: "1 low, operators; no rule yet", audit: "10 1s 10m high, operators only",
	} {
		delays := waits(policies()[topic])
		got := fmt.Sprint(1 + len(delays))
		if len(delays) > 0 {
			got += " " + retrytopics.FormatDelay(slices.Min(delays)) + " " + retrytopics.FormatDelay(slices.Max(delays))
		}
		if got += " " + strings.Join(said[topic], ", "); got != want {
			t.Errorf("%s is tried %s, want %s", topic, got, want)
		}
	}
}

// waits returns the waits before each further attempt: the last tier repeats.
func waits(p consumer.Policy) []time.Duration {
	all := slices.Clone(p.Delays())
	for len(all) > 0 && len(all) < p.MaxAttempts-1 {
		all = append(all, all[len(all)-1])
	}
	return all
}

var ends = map[consumer.Disposition]string{consumer.DeadLetter: "dead letter", consumer.Discard: "discard", consumer.Stop: "stop"}

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

// spelled returns waits as the page has them: 1m 1m 1m is 3 × 1m.
func spelled(delays []time.Duration) string {
	var words []string
	for i := 0; i < len(delays); {
		n := 1
		for i+n < len(delays) && delays[i+n] == delays[i] {
			n++
		}
		word := retrytopics.FormatDelay(delays[i])
		if n > 1 {
			word = fmt.Sprintf("%d × %s", n, word)
		}
		words = append(words, word)
		i += n
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

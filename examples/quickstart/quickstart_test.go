package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheNumbersAddUp(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), []string{"-json", "-for", "1s"}, &stdout, &stderr); got != exitOK {
		t.Fatalf("exit %d, want %d; it said:\n%s\n%s", got, exitOK, stdout.String(), stderr.String())
	}
	var table map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &table); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout.String())
	}
	for name, want := range map[string]float64{
		"produced": 100, "handled": 91, "retried": 9, "deadLettered": 9, "waiting": 0, "lost": 0, "duplicated": 0, "early": 0,
	} {
		if got := table[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	classes, _ := table["byClass"].(map[string]any)
	for class, want := range map[string]float64{"decode": 3, "payment.busy": 3, "main.UnknownSKU": 2, "panic.runtime.boundsError": 1} {
		if got := classes[class]; got != want {
			t.Errorf("byClass has %v of %s, want %v", got, class, want)
		}
	}
	retries, _ := table["byRetries"].(map[string]any)
	for k, want := range map[string]float64{"0": 82, "1": 3, "2": 3, "3": 3} {
		if got := retries[k]; got != want {
			t.Errorf("byRetries has %v after %s, want %v", got, k, want)
		}
	}
}

func TestAPersonCanFollowAnOrder(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), []string{"-for", "1s"}, &stdout, &stderr); got != exitOK {
		t.Fatalf("exit %d, want %d; it said:\n%s\n%s", got, exitOK, stdout.String(), stderr.String())
	}
	if want := "healthy orders in this second"; !strings.Contains(stdout.String(), want) {
		t.Errorf("no %q in:\n%s", want, stdout.String())
	}
	rest := stdout.String()
	for _, want := range []string{ // order 27 is busy three times
		"order-0027  failed: payment.busy (gateway is busy) → orders.retry.500ms, due at ",
		"order-0027  failed: payment.busy (gateway is busy) → orders.retry.1s, due at ",
		"order-0027  failed: payment.busy (gateway is busy) → orders.retry.2s, due at ",
		"order-0027  handled on attempt 4, from the 2s tier, ",
		"handled after 3 retries ",
		"It adds up: 91 handled + 9 dead-lettered = 100 produced.",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("no %q where it belongs in:\n%s", want, stdout.String())
		}
		rest = after
	}
	// The README shows the table of a longer run: the same rows, with other numbers.
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "go run ./examples/quickstart\n")
	if got, want := rows(shown), rows(stdout.String()); len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("the README shows the rows\n%q\nwant\n%q", got, want)
	}
}

// rows are the names in the first closing table of a text, which begins with the orders produced.
func rows(text string) (names []string) {
	_, table, _ := strings.Cut(text, "  produced  ")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^ *(\S.*?) {2,}\d+$`).FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	return names
}

// A broker acknowledges copies that it did not write. Siding cannot detect that, so the table is
// made from the topics.
func TestABrokenForwardIsSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		swallow string
		lost    int
	}{
		"copies to a retry topic": {".retry.500ms", 12},
		"dead letters":            {".dlq", 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := fake(t)
			broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				broker.KeepControl()
				produce := req.(*kmsg.ProduceRequest)
				swallowed := func(t kmsg.ProduceRequestTopic) bool { return strings.HasSuffix(t.Topic, test.swallow) }
				if !slices.ContainsFunc(produce.Topics, swallowed) {
					return nil, nil, false
				}
				return acknowledge(produce, swallowed), nil, true
			})
			var stdout, stderr bytes.Buffer
			got := run(t.Context(), []string{"-json", "-for", "1s", "-brokers", broker.ListenAddrs()[0]}, &stdout, &stderr)
			var table tally
			if err := json.Unmarshal(stdout.Bytes(), &table); err != nil {
				t.Fatalf("stdout: %v\n%s%s", err, stdout.String(), stderr.String())
			}
			if got != exitUnsound || table.Lost != test.lost {
				t.Errorf("exit %d with %d lost, want %d with %d; it said:\n%s\n%s", got, table.Lost, exitUnsound, test.lost, stdout.String(), stderr.String())
			}
			if sum := table.Handled + table.DeadLettered + table.Lost; sum != table.Produced {
				t.Errorf("%d handled, dead-lettered or lost, want the %d produced", sum, table.Produced)
			}
		})
	}
}

// acknowledge answers a produce request as if the swallowed topics were written. The others in it
// are to be sent once more.
func acknowledge(req *kmsg.ProduceRequest, swallowed func(kmsg.ProduceRequestTopic) bool) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition = p.Partition
			if !swallowed(t) {
				partition.ErrorCode = kerr.NotEnoughReplicas.Code
			}
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func TestTheClusterIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"cleaned": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := fake(t)
			args := []string{"-json", "-for", "1s", "-brokers", broker.ListenAddrs()[0]}
			if keep {
				args = append(args, "-keep")
			}
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), args, &stdout, &stderr); got != exitOK {
				t.Fatalf("exit %d, want %d; it said:\n%s", got, exitOK, stderr.String())
			}
			topics, groups := left(t, broker)
			want := []int{0, 0}
			if keep {
				want = []int{6, 1} // the source, three tiers, the dead-letter topic and its ledger
			}
			if got := []int{len(topics), len(groups)}; !slices.Equal(got, want) {
				t.Errorf("topics %v and groups %v are left, want %v of them", topics, groups, want)
			}
			for _, topic := range topics {
				if !strings.HasPrefix(topic, "quickstart-") {
					t.Errorf("topic %q is not called quickstart-…", topic)
				}
			}
		})
	}
}

func TestAnInterruptStopsCleanly(t *testing.T) {
	t.Parallel()
	broker := fake(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stdout := &trigger{when: "→ ", then: interrupt}
	var stderr bytes.Buffer
	if got := run(ctx, []string{"-brokers", broker.ListenAddrs()[0]}, stdout, &stderr); got != exitInterrupted {
		t.Errorf("exit %d, want %d", got, exitInterrupted)
	}
	if !strings.Contains(stdout.String(), "It adds up: ") || strings.TrimSpace(stderr.String()) != "quickstart: interrupted" {
		t.Errorf("it said:\n%s\n%s", stdout.String(), stderr.String())
	}
	if topics, groups := left(t, broker); len(topics)+len(groups) > 0 {
		t.Errorf("topics %v and groups %v are left", topics, groups)
	}
}

// trigger calls then once the text written contains when.
type trigger struct {
	bytes.Buffer
	mu   sync.Mutex
	when string
	then func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(p), w.when) {
		w.then()
	}
	return w.Buffer.Write(p)
}

func TestBadFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"unknown":            {[]string{"-nope"}, exitUsage, "-nope"},
		"argument":           {[]string{"orders"}, exitUsage, `only flags: "orders"`},
		"no duration":        {[]string{"-for", "soon"}, exitUsage, "-for"},
		"too short":          {[]string{"-for", "10ms"}, exitUsage, "want 1s to 12s"},
		"too long":           {[]string{"-for", "1h"}, exitUsage, "want 1s to 12s"},
		"empty brokers":      {[]string{"-brokers", " , "}, exitUsage, "names no broker"},
		"nothing to keep":    {[]string{"-keep"}, exitUsage, "-keep needs -brokers"},
		"two at once, first": {[]string{"-keep", "-for", "0s"}, exitUsage, "-keep needs -brokers"},
		"two at once, next":  {[]string{"-keep", "-for", "0s"}, exitUsage, "-for is 0s"},
		"help":               {[]string{"-h"}, exitOK, "usage: quickstart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), test.args, &stdout, &stderr); got != test.exit {
				t.Errorf("exit %d, want %d", got, test.exit)
			}
			if !strings.Contains(stderr.String(), test.says) || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q; want %q on stderr", stderr.String(), stdout.String(), test.says)
			}
		})
	}
}

func TestAMissingBrokerIsNamed(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), []string{"-brokers", "127.0.0.1:1"}, &stdout, &stderr); got != exitUnsound {
		t.Errorf("exit %d, want %d", got, exitUnsound)
	}
	if !strings.Contains(stderr.String(), "no broker answers at [127.0.0.1:1]") {
		t.Errorf("it said: %s", stderr.String())
	}
}

// fake returns a broker that names topics, instead of their ids, in produce requests.
func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V3_8_0()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker
}

// left returns the topics and groups on a broker.
func left(t *testing.T, broker *kfake.Cluster) (topics, groups []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	there, err := admin.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed, err := admin.ListGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return there.Names(), listed.Groups()
}

func TestEachFaultIsCounted(t *testing.T) {
	t.Parallel()
	type world struct {
		journal map[string]entry
		found   found
	}
	// One order was handled at its second attempt, one was dead-lettered at its first.
	sound := func() world {
		now := time.Now()
		return world{
			map[string]entry{
				"a": {healthy: true, at: now, produced: true, runs: 2, handled: 1, latency: time.Millisecond},
				"b": {at: now, produced: true, runs: 1},
			},
			found{
				source: map[string]bool{"a": true, "b": true}, parked: map[string]int{"a": 1}, waiting: map[string]bool{},
				dead: map[string][]letter{"b": {{class: "decode", attempts: 1, intact: true}}},
			},
		}
	}
	edit := func(w *world, id string, f func(*entry)) {
		e := w.journal[id]
		f(&e)
		w.journal[id] = e
	}
	for name, test := range map[string]struct {
		do    func(*world)
		check func(*tally) bool // the number that shows the fault
		says  string
		sound bool
	}{
		"nothing": {
			func(*world) {}, func(t *tally) bool {
				return t.Produced == 2 && t.Handled == 1 && t.Retried == 1 && t.DeadLettered == 1 && t.ByClass["decode"] == 1
			}, "", true,
		},
		"never produced": {
			func(w *world) { w.journal["c"] = entry{at: time.Now()} },
			func(t *tally) bool { return t.Produced == 2 }, "", true,
		},
		"written, though the producer did not learn of it, and lost": {
			func(w *world) { w.journal["c"], w.found.source["c"] = entry{at: time.Now()}, true },
			func(t *tally) bool { return t.Produced == 3 && t.Lost == 1 }, "c: lost", false,
		},
		"lost": {
			func(w *world) { delete(w.found.dead, "b") },
			func(t *tally) bool { return t.Lost == 1 && t.DeadLettered == 0 }, "b: lost", false,
		},
		"waiting at the end": {
			func(w *world) { delete(w.found.dead, "b"); w.found.waiting["b"] = true },
			func(t *tally) bool { return t.Waiting == 1 && t.Lost == 0 }, "", false,
		},
		"acknowledged and not written": {
			func(w *world) { delete(w.found.source, "a") },
			func(t *tally) bool { return t.Produced == 2 }, "a: acknowledged", false,
		},
		"handled twice": {
			func(w *world) { edit(w, "a", func(e *entry) { e.handled = 2 }) },
			func(t *tally) bool { return t.Duplicated == 1 && t.Handled == 1 }, "a: handled 2 times", false,
		},
		"handled and dead-lettered": {
			func(w *world) { w.found.dead["a"] = w.found.dead["b"] },
			func(t *tally) bool { return t.Duplicated == 1 }, "a: handled 1 times and dead-lettered 1", false,
		},
		"two dead letters": {
			func(w *world) { w.found.dead["b"] = append(w.found.dead["b"], w.found.dead["b"][0]) },
			func(t *tally) bool { return t.Duplicated == 1 && t.DeadLettered == 1 }, "b: handled 0 times and dead-lettered 2", false,
		},
		"early": {
			func(w *world) { edit(w, "a", func(e *entry) { e.early = 1 }) },
			func(t *tally) bool { return t.Early == 1 }, "a: ran 1 times before", false,
		},
		"a retry without a copy": {
			func(w *world) { delete(w.found.parked, "a") },
			func(t *tally) bool { return t.Handled == 1 }, "a: 0 copies", false,
		},
		"a changed value": {
			func(w *world) { w.found.dead["b"][0].intact = false },
			func(t *tally) bool { return t.DeadLettered == 1 }, "b: its dead letter", false,
		},
		"a stranger's dead letter": {
			func(w *world) { w.found.dead["x"] = w.found.dead["b"] },
			func(t *tally) bool { return t.DeadLettered == 1 }, `of "x"`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound()
			test.do(&w)
			got := count(w.journal, w.found)
			var out strings.Builder
			got.print(&out)
			if !test.check(got) || got.sound() != test.sound || !strings.Contains(out.String(), test.says) {
				t.Errorf("sound %t, want %t, and %q said:\n%s", got.sound(), test.sound, test.says, out.String())
			}
		})
	}
}

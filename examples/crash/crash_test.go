package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// What the test gives to its processes.
const (
	brokersEnv   = "CRASH_BROKERS"
	journalEnv   = "CRASH_JOURNAL"
	isolationEnv = "CRASH_ISOLATION"
)

func TestMain(m *testing.M) {
	if brokers := os.Getenv(brokersEnv); brokers != "" {
		if err := serve(brokers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is the service, in a process of its own.
func serve(brokers string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	journal, err := os.OpenFile(os.Getenv(journalEnv), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	c, err := consumer.New(configure(bill{journal}, os.Getenv(isolationEnv) == "off",
		kgo.SeedBrokers(strings.Split(brokers, ",")...),
		// a member that starts again takes the place of the one that died, which it would otherwise
		// await for a session's timeout
		kgo.InstanceID("billing-0"),
	))
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// The incident without isolation, and with it. docs/delivery.md has the numbers.
func TestTable_IsThatOfThePage(t *testing.T) {
	t.Parallel()
	var orders []*kgo.Record
	for i := range before + 1 + behind {
		orders = append(orders, &kgo.Record{Topic: topic, Value: fmt.Append(nil, i)})
	}
	orders[before].Value = []byte(kills)
	var all []counts
	for _, isolation := range []string{"off", "on"} {
		t.Run("isolation "+isolation, func(t *testing.T) {
			is, _ := incident(t, isolation, 1, orders, starts)
			all = append(all, is)
		})
	}
	got := table(all...)
	t.Logf("\n%s", got)
	page, err := os.ReadFile("../../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), got) {
		t.Errorf("docs/delivery.md has another table than\n%s", got)
	}
}

// partitions have fewer records each than may run before the second commit.
const partitions = 8

// With several of them among 300 orders of eight partitions, the first one costs four deaths at
// most, and each further one two. All others are handled, and only what kills is dead-lettered.
func TestIncident_SeveralKill(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			var orders []*kgo.Record
			for i := range 300 {
				orders = append(orders, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
			}
			for _, i := range rand.Perm(len(orders))[:n] {
				orders[i].Value = []byte(kills)
			}
			is, letters := incident(t, "on", partitions, orders, 20)
			if most := 2 + 2*n; is.deaths > most {
				t.Errorf("%d deaths, want %d at most", is.deaths, most)
			}
			if len(letters) != n || slices.ContainsFunc(letters, func(r *kgo.Record) bool { return string(r.Value) != kills }) {
				t.Errorf("%d dead letters, want the %d that kill", len(letters), n)
			}
		})
	}
}

// incident runs processes one after the other until all orders are done, or there were so many. It
// returns the dead letters, too.
func incident(t *testing.T, isolation string, partitions int32, orders []*kgo.Record, most int) (is counts, letters []*kgo.Record) {
	t.Helper()
	is.isolation = isolation
	k := consumertest.Start(t)
	k.CreateTopic(topic, partitions)
	copies := make([]*kgo.Record, len(orders))
	for i, r := range orders {
		c := *r
		copies[i] = &c
	}
	orders = k.Produce(copies...)
	journal := filepath.Join(t.TempDir(), "journal")
	handled := func() map[string]bool {
		text, _ := os.ReadFile(journal) // it does not exist at first
		done := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			done[strings.TrimSpace(line)] = true
		}
		return done
	}
	poisons := 0
	for _, r := range orders {
		if string(r.Value) == kills {
			poisons++
		}
	}
	over := func() bool { return len(handled()) == len(orders)-poisons && dead(k) == int64(poisons) }
	for range most {
		if died := process(t, k, journal, isolation, over); !died {
			break
		}
		is.deaths++
	}
	done := handled()
	for _, r := range orders {
		if string(r.Value) != kills && !done[fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)] {
			is.never++
		}
	}
	is.dead = int(dead(k))
	for l, err := range dlq.Read(t.Context(), topic+".dlq", dlq.Filter{}, dlq.Cursor{}, k.Opts()...) {
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, l.Record)
		if m := l.Meta; l.MetaErr != nil || m.Reason != headers.ReasonCrashLoop || m.Class != "crash.handler" {
			t.Errorf("a letter has reason %q, class %q (%v)", m.Reason, m.Class, l.MetaErr)
		}
	}
	if isolation == "on" && (is.never > 0 || is.dead != poisons) {
		t.Errorf("%+v: want all but %d handled", is, poisons)
	}
	return is, letters
}

// dead counts the dead letters.
func dead(k *consumertest.Kafka) (n int64) {
	for p := range int32(partitions) {
		if info := k.Cluster.PartitionInfo(topic+".dlq", p); info != nil {
			n += info.HighWatermark
		}
	}
	return n
}

// process runs one process until it dies, or all is over. It reports whether it died of an order.
func process(t *testing.T, k *consumertest.Kafka, journal, isolation string, over func() bool) (died bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokersEnv+"="+strings.Join(k.Cluster.ListenAddrs(), ","), journalEnv+"="+journal, isolationEnv+"="+isolation)
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for give := time.After(time.Minute); ; {
		select {
		case err := <-ended:
			if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == exitCode {
				return true
			}
			t.Fatalf("the process ended by itself: %v\n%s", err, words.Bytes())
		case <-give:
			_ = cmd.Process.Kill()
			t.Fatalf("not over within a minute: %v\n%s", <-ended, words.Bytes())
		case <-time.After(50 * time.Millisecond):
			if over() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				if err := <-ended; err != nil {
					t.Errorf("the process ended with %v\n%s", err, words.Bytes())
				}
				return false
			}
		}
	}
}

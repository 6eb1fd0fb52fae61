package look_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// commits commits for a group as siding does that says these fields.
func commits(t *testing.T, adm *kadm.Client, group, topic string, partition int32, at int64, fields string) {
	t.Helper()
	o := kadm.Offsets{}
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1 f=" + strconv.FormatInt(at, 36) + fields})
	if err := adm.CommitAllOffsets(t.Context(), group, o); err != nil {
		t.Fatal(err)
	}
}

// On call one asks what is held, since when, how many wait, and what for: a group that died while
// it was held, stopped and behind a transaction says it all, for the topic, its siblings and the
// group.
func TestConsumers_SayWhatWaitsAndWhy(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	ago := func(d time.Duration) time.Time { return clitest.Noon.Add(-d) }
	for _, topic := range []string{"refunds", "refunds.dlq", "refunds.retry.5m"} {
		b.Topic(t, topic, 3, nil)
	}
	tier := headers.Meta{
		Group: "billing", Attempts: 1, Class: "down", NotBefore: clitest.Noon.Add(90 * time.Second), FailedAt: clitest.Noon, FirstFailedAt: clitest.Noon,
		Original: headers.Position{Topic: "refunds", Partition: 1, Timestamp: clitest.Noon},
	}
	b.Produce(t, &kgo.Record{Topic: "refunds", Partition: 1}, &kgo.Record{Topic: "refunds", Partition: 1}, &kgo.Record{Topic: "refunds", Partition: 2})
	b.Produce(t, &kgo.Record{Topic: "refunds.retry.5m", Partition: 1, Headers: tier.Append(nil)})
	said := commitmark.Guard{State: commitmark.Held, Since: ago(12 * time.Minute), Class: "billing.down"}.Field()
	commits(t, b.Admin, "billing", "refunds", 1, 0, said+commitmark.Lane{OpenSince: ago(2 * time.Minute), Release: "2.3.1"}.Field())
	commits(t, b.Admin, "billing", "refunds", 2, 0, commitmark.Lane{State: commitmark.Denied, Since: ago(3 * time.Minute), Release: "2.3.0"}.Field()+" n=2 s=1 g=AAE")
	commits(t, b.Admin, "billing", "refunds.retry.5m", 1, 0, "")
	for _, name := range []string{"refunds", "refunds.dlq", "refunds.retry.5m", "billing"} {
		got := b.Redrive(t, "consumers", name)
		roottest.Prints(t, got, cli.ExitDone, "held for 12m by billing (1 of 3 partitions), 2 records wait; most failures are billing.down", "", name)
		for _, want := range []string{
			"GROUP ", " NEXT DUE", "no members", "in 1m30s", "2.3.0, 2.3.1",
			"partition 1: an open transaction is ahead of it, for 2m, 2 records wait",
			"partition 2: blocked: it lacks the permission to write to a topic, for 3m, 1 record waits",
			"partition 2: 2 processes died: records below offset 1 run one by one",
		} {
			if !strings.Contains(strings.Join(strings.Fields(got.Stdout), " "), want) && !strings.Contains(got.Stdout, want) {
				t.Errorf("%s: it lacks %q:\n%s", name, want, got.Stdout)
			}
		}
	}
	got := b.Redrive(t, "consumers", "refunds", "-o", "jsonl")
	for _, want := range []string{
		`"group":"billing","topic":"refunds","state":"no members"`, `"siding":true,"memberCount":0,"assigned":0,"partitions":3,"lag":`, `"parked":1,"nextDue":"2026-`,
		`"guard":{"group":"billing","state":"held","since":"`, `"troubles":[{"kind":"transaction","text":"`, `"undescribed":null`, `"tiers":[{"topic":"refunds.retry.5m","delayMs":300000,"parked":1,"nextDue":"`,
		`{"partition":2,"state":"denied","since":"`, `"deaths":2,"isolated":true,"member":null,"lag":1}`,
	} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("it lacks %s:\n%s", want, got.Stdout)
		}
	}
}

// A name that is no topic's and no group's is a mistake; a group that consumes nothing looks the
// same to brokers.
func TestConsumers_OfNobody(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	roottest.Prints(t, b.Redrive(t, "consumers", "payments"), cli.ExitDone, "", "no consumer group has committed on payments")
	roottest.Prints(t, b.Redrive(t, "consumers", "nobody"), cli.ExitError, "", "there is no topic nobody, and no group of that name")
	roottest.Prints(t, b.Redrive(t, "consumers", "orders", "--group"), cli.ExitError, "", "there is no topic orders, and no group of that name")
	roottest.Prints(t, b.Redrive(t, "consumers", "orders", "--follow", "-o", "json"), cli.ExitUsage, "", "--follow goes with -o table and -o jsonl")
}

// Of a group that the user may not describe the verb says so, and what to grant.
func TestConsumers_NameWhatIsHidden(t *testing.T) {
	t.Parallel()
	b := roottest.Guarded(t, roottest.DocumentedPermissions(t, 0))
	got := b.As("ann").Run(t, "consumers", "secret", "--group")
	roottest.Prints(t, got, cli.ExitError, "", "DESCRIBE on group secret")
}

// A live service runs; the line of a group that comes is printed once, and no line twice.
func TestConsumers_FollowPrintsChanges(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.IncidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 10})
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		var got roottest.Result
		var all sync.WaitGroup
		all.Go(func() { got = s.As().In(ctx, t, "consumers", "orders", "--follow") })
		time.Sleep(12 * time.Second)
		commits(t, s.Admin, "shipping", "orders", 0, 0, commitmark.Lane{State: commitmark.Stopped, Since: time.Now()}.Field())
		time.Sleep(12 * time.Second)
		stop(cli.ErrInterrupted)
		all.Wait()
		lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
		if got.Code != cli.ExitDone || len(lines) != 2 || !strings.HasSuffix(lines[0], "  billing on orders: runs, lag 10") || !strings.Contains(lines[1], "  shipping on orders: no members; partition 0: ") ||
			!strings.Contains(lines[1], ": stopped at a record that may not be skipped, for ") {
			t.Errorf("got %+v", got)
		}
	})
}

package roottest

// An incident whose records are dead letters, and its runs.

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
)

// A Service is an incident whose records are dead letters, and the tests' way to its broker.
type Service struct {
	*Broker
	*demo.Incident
}

// Virtual runs a test in virtual time. Its brokers are in memory, as those of IncidentOf.
func Virtual(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // the last clients end
		test(t)
	})
}

// InTrouble has 60 dead letters with a tax bug and 40 with a payment bug, of group billing.
func InTrouble(t *testing.T) *Service {
	t.Helper()
	return IncidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 60}, demo.Bug{Class: "payment", Message: "the bank said no", Records: 40})
}

// IncidentOf is a service whose records are dead letters by these bugs, on a network in memory.
func IncidentOf(t *testing.T, bugs ...demo.Bug) *Service {
	t.Helper()
	var network kfake.VirtualNetwork
	return IncidentOn(t, network.DialContext, []kfake.Opt{kfake.ListenFn(network.Listen), kfake.Ports(9092)}, bugs...)
}

// IncidentOn is IncidentOf on a network.
func IncidentOn(t *testing.T, dial func(ctx context.Context, network, host string) (net.Conn, error), listen []kfake.Opt, bugs ...demo.Bug) *Service {
	t.Helper()
	i, err := demo.StartIncidentOn(listen, []kgo.Opt{kgo.Dialer(dial), kgo.DisableClientMetrics()}, bugs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	bubble.Recode(i.Cluster)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := i.Fail(ctx); err != nil {
		t.Fatal(err)
	}
	b := &Broker{Cluster: i.Cluster, Addr: i.Address, Dial: dial}
	return &Service{b.Open(t), i}
}

// As returns an invocation on the service's broker, at the real time.
func (s *Service) As() Invocation {
	return Invocation{Env: map[string]string{"SIDING_BROKERS": s.Addr}, Dial: s.Dial, Now: time.Now}
}

// Fast are the flags of a pace at which a run ends within some seconds.
var Fast = []string{"--rate", "0", "--ramp", "0", "--window", "4s"}

// Redrive runs a command on the service's broker, at the real time.
func (s *Service) Redrive(t *testing.T, args ...string) Result {
	t.Helper()
	return s.As().Run(t, args...)
}

// Exported returns the lines of an export of the open letters, whose partitions come in any order.
func (s *Service) Exported(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(strings.Lines(s.Redrive(t, "export", "orders.dlq").Stdout))
}

// HeldUp opens a transaction on all partitions of a topic and aborts it some time later: readers of
// committed records wait.
func (s *Service) HeldUp(t *testing.T, topic string, during time.Duration) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.Dialer(s.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("another-process"))
	if err != nil {
		t.Error(err)
		return
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Error(err)
	}
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr(); err != nil {
		t.Error(err)
	}
	time.AfterFunc(during, func() {
		defer cl.Close()
		_ = cl.EndTransaction(context.Background(), kgo.TryAbort)
	})
}

// InterruptedRun is a run that was stopped by Ctrl-C while it sent.
func (s *Service) InterruptedRun(t *testing.T) Outcome {
	t.Helper()
	s.Fix("tax")
	ctx, stop := context.WithCancelCause(t.Context())
	i := s.As()
	i.Watch = func(words string) {
		if strings.HasPrefix(words, "the canary succeeded") {
			time.AfterFunc(500*time.Millisecond, func() { stop(cli.ErrInterrupted) })
		}
	}
	got := i.In(ctx, t, "run", "orders.dlq", "--class", "tax", "--rate", "20", "--ramp", "0", "--window", "4s", "-o", "json")
	o := OutcomeOf(t, got.Stdout)
	want := fmt.Sprintf("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it\nredrive: interrupted\n", o.Run, o.Run)
	if got.Code != cli.ExitError || o.State != "sending" || o.Sent == 0 || o.Sent == o.Selected || o.Ended != nil || !strings.HasSuffix(got.Stderr, want) {
		t.Fatalf("%+v", got)
	}
	return o
}

// WhileSending runs the letters of tax at a rate, and does something else once the canary
// succeeded.
func (s *Service) WhileSending(t *testing.T, rate string, do func(run string)) Result {
	t.Helper()
	done := make(chan struct{})
	i, name := s.As(), ""
	i.Watch = func(words string) {
		if id, ok := strings.CutPrefix(words, "run "); ok {
			name, _, _ = strings.Cut(id, ":")
		}
		if strings.HasPrefix(words, "the canary succeeded") {
			go func() {
				defer close(done)
				do(name)
			}()
		}
	}
	got := i.Run(t, "run", "orders.dlq", "--class", "tax", "--rate", rate, "--ramp", "0", "--window", "4s", "-o", "json")
	<-done
	return got
}

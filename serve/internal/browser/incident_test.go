package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
)

// incident is a broker with dead letters of the last hours, and a service that goes on failing.
type incident struct {
	t        *testing.T
	kafka    []kgo.Opt
	cl       *kgo.Client
	n        int64
	repaired atomic.Bool
	handled  chan *kgo.Record // what the service handled since it was repaired
}

// What is open at first, in all and in orders.dlq, and after one more failure there.
const (
	openInAll     = "354 open"
	openOrders    = "350 open"
	oneMoreInAll  = "355 open"
	oneMoreOrders = "351 open"
)

// newIncident makes an incident: letters of three classes in orders.dlq, the oldest first, some in
// payments.dlq, none in mails.dlq, and what operators decided about them.
func newIncident(t *testing.T) *incident {
	t.Helper()
	asked(t)
	var topics []string
	for _, source := range []string{"orders", "payments", "mails"} {
		topics = append(topics, source, source+".dlq", source+".dlq.ledger")
	}
	i := &incident{t: t, kafka: brokers(t, topics...), handled: make(chan *kgo.Record, 1000)}
	var err error
	if i.cl, err = kgo.NewClient(append(i.kafka, kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.cl.Close)
	now := time.Now()
	for range 30 {
		i.letter("orders", "decode", "unexpected end of JSON input", "2.1.0", now.Add(-5*time.Hour))
	}
	for n := range 90 {
		i.letter("orders", "http.503", "payments: service unavailable", []string{"2.3.0", "2.3.1"}[n%2], now.Add(-2*time.Hour-time.Duration(90-n)*40*time.Second))
	}
	for n := range 240 {
		i.letter("orders", "tax.TableMiss", fmt.Sprintf("no rate for region \"N%d\"", n%7), "2.3.1", now.Add(-time.Duration((240-n)*(240-n)/12)*time.Second))
	}
	for range 4 {
		i.letter("payments", "bank.Declined", "the bank said no", "1.9.2", now.Add(-26*time.Hour))
	}
	ledger := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", i.kafka...)
	if _, err := ledger.Discard(t.Context(), dlq.Filter{Classes: []string{"decode"}, Ranges: []dlq.Range{{Partition: 1}}}, dlq.Cursor{}, dlq.DiscardOptions{By: "anna", Why: "test orders of OPS-4711, nobody waits for them"}); err != nil {
		t.Fatal(err)
	}
	i.service()
	return i
}

// letter writes a letter of a record that failed at three attempts, the last one at a time.
func (i *incident) letter(source, class, message, version string, failed time.Time) {
	i.t.Helper()
	i.n++
	r := &kgo.Record{
		Topic: source, Partition: int32(i.n % 3), Offset: i.n, Timestamp: failed.Add(-7 * time.Second),
		Key: fmt.Appendf(nil, "order-%d", i.n), Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/json")}, {Key: "tenant", Value: []byte("north")}},
		Value: fmt.Appendf(nil, `{"order":%d,"region":"N%d","items":[{"sku":"TEA-250","quantity":2},{"sku":"CUP-1","quantity":1}],"note":"ring twice; %s"}`, i.n, i.n%7, "the bell is the one beside the blue door"),
	}
	m := headers.Meta{
		Original: headers.Position{Topic: source, TopicID: [16]byte{1}, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}, Group: "billing", Attempts: 3,
		Class: class, Fingerprint: fmt.Sprintf("%016x", len(class)*7919+len(message)), Message: message, Stack: "main.(*handler).tax\n\torders/tax.go:41\nmain.(*handler).handle\n\torders/handler.go:17",
		Reason: headers.ReasonExhausted, FirstFailedAt: failed.Add(-6 * time.Second), FailedAt: failed, Version: version, Environment: "production", Host: "billing-7d4f9",
	}
	for n, before := range []time.Duration{6 * time.Second, 5 * time.Second, 0} {
		m.History = append(m.History, headers.Attempt{Number: n + 1, Class: class, At: failed.Add(-before), Verdict: "retry", Message: message})
	}
	done := make(chan error, 1)
	dlq.NewWriter(i.cl, source+".dlq").Write(i.t.Context(), r, m, func(err error) { done <- err })
	if err := <-done; err != nil {
		i.t.Fatal(err)
	}
}

// service runs a consumer of orders whose handler fails on each record, as its value says, until it
// is repaired. No letter could come back before its first commit, so service waits for that.
func (i *incident) service() {
	i.t.Helper()
	service, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: i.kafka, Logger: i.warnings(),
		Handler: func(_ context.Context, r *kgo.Record) error {
			if i.repaired.Load() {
				i.handled <- r
				return nil
			}
			return classify.Terminal(classify.As(errors.New("it failed"), string(r.Value)))
		},
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second, 5 * time.Second}, Breaker: consumer.Breaker{Off: true}},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	i.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			i.t.Error(err)
		}
	})
	i.awaitCommits("orders.retry.1s")
}

// awaitCommits waits until the service has committed an offset on each partition of a topic.
func (i *incident) awaitCommits(topic string) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	adm := kadm.NewClient(i.cl)
	for tick := time.Tick(20 * time.Millisecond); ; {
		committed, err := adm.FetchOffsets(ctx, "billing")
		if len(committed[topic]) == 3 {
			return
		}
		select {
		case <-tick:
		case <-ctx.Done():
			i.t.Fatalf("group billing committed on %d of 3 partitions of %s within %v: %v", len(committed[topic]), topic, patience, err)
		}
	}
}

// warnings returns a logger of warnings, which go to the test's output.
func (i *incident) warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(i.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// repair makes the service handle whatever it gets.
func (i *incident) repair() { i.repaired.Store(true) }

// fail sends the service a record, which becomes a dead letter of a class.
func (i *incident) fail(class string) {
	i.t.Helper()
	if err := i.cl.ProduceSync(i.t.Context(), &kgo.Record{Topic: "orders", Value: []byte(class)}).FirstErr(); err != nil {
		i.t.Fatal(err)
	}
}

// leaveRun begins a run of the letters of a class in a process that ends after it sent some, and
// returns the path of the run's page. No server goes on with such a run by itself.
func (i *incident) leaveRun(class string, sent int64) string {
	i.t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: i.kafka, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	plan, err := r.Plan(ctx, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Classes: []string{class}}})
	if err != nil {
		i.t.Fatal(err)
	}
	o, err := r.Run(ctx, plan, redrive.RunOptions{By: "ada", Why: "the payments are up again", Pace: redrive.Pace{Rate: 30, Ramp: -1, Window: time.Second}, On: func(e redrive.Event) {
		if e.Counts.Sent >= sent {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || o.State.Finished() {
		i.t.Fatalf("the run ended as %s, %v", o.State, err)
	}
	return "/topics/orders.dlq/runs/" + plan.ID
}

// server is a server at an address that outlasts it.
type server struct {
	i    *incident
	cfg  serve.Config
	stop func()
}

// serve runs a server over the incident, until the test ends.
func (i *incident) serve(cfg serve.Config) *server {
	i.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		i.t.Fatal(err)
	}
	cfg.Kafka, cfg.Refresh, cfg.Listen = i.kafka, 500*time.Millisecond, l.Addr().String()
	s := &server{i: i, cfg: cfg}
	s.on(l)
	i.t.Cleanup(func() { s.stop() })
	return s
}

// on runs the server on a listener.
func (s *server) on(l net.Listener) {
	s.i.t.Helper()
	one, err := serve.New(s.cfg, s.i.warnings())
	if err != nil {
		s.i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- one.Serve(ctx, l) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.i.t.Errorf("the server: %v", err)
		}
		s.stop = func() {}
	}
}

// again starts the server that was stopped, at its address.
func (s *server) again() {
	s.i.t.Helper()
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		s.i.t.Fatal(err)
	}
	s.on(l)
}

// at returns the address of a page.
func (s *server) at(path string) string { return "http://" + s.cfg.Listen + path }

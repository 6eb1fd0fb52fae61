package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// What is busy is tried again later, and what comes behind it does not wait. What is broken goes to
// orders.dlq at once.
func Example() {
	brokers, stop := start("busy", "broken", "fine")
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	c, err := consumer.New(consumer.Config{
		Group:  "billing",
		Topics: []string{"orders"},
		Kafka:  []kgo.Opt{brokers},
		Policy: consumer.Policy{Tiers: []time.Duration{200 * time.Millisecond, time.Second}},
		Logger: slog.New(slog.DiscardHandler),
		Handler: func(ctx context.Context, r *kgo.Record) error {
			attempt := consumer.DeliveryOf(ctx, r).Attempt
			switch {
			case string(r.Value) == "busy" && attempt == 1:
				fmt.Println("busy: comes back in 200ms")
				return classify.Retryable(errors.New("the gateway is busy"))
			case string(r.Value) == "broken":
				fmt.Println("broken: goes to orders.dlq")
				return errors.New("no such SKU") // unknown: terminal
			case string(r.Value) == "busy":
				defer cancel() // the last one of this example
			}
			fmt.Printf("%s: charged on attempt %d\n", r.Value, attempt)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("end:", c.Run(ctx))
	// Output:
	// busy: comes back in 200ms
	// broken: goes to orders.dlq
	// fine: charged on attempt 1
	// busy: charged on attempt 2
	// end: <nil>
}

// One error has all problems of a configuration, before anything is connected or created.
func ExampleNew_invalid() {
	_, err := consumer.New(consumer.Config{
		Topics:  []string{"orders"},
		Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.ConsumeTopics("orders")},
		Handler: func(context.Context, *kgo.Record) error { return nil },
		Policy:  consumer.Policy{Jitter: 2},
	})
	fmt.Println(err)
	// Output:
	// consumer: invalid configuration:
	// Group is empty
	// Policy: Jitter is 2: at most 1, the share of the wait that is added
	// option kgo.ConsumeTopics in Kafka is siding's: set Config.Topics
}

// A topic can have its own policy, which replaces Policy as a whole.
func ExampleConfig_policies() {
	webhooks := consumer.Policy{
		Tiers:       retrytopics.Exponential(time.Minute, time.Hour, 7), // 1m, 2m … 32m, 1h
		MaxAttempts: 13,                                                 // six retries wait 1h
	}
	cfg := consumer.Config{
		Group:   "billing",
		Topics:  []string{"orders", "webhooks", "audit", "clicks"},
		Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		Handler: func(context.Context, *kgo.Record) error { return nil },
		// For orders: the default tiers, and no retry for what failed first an hour ago.
		Policy: consumer.Policy{MaxAge: time.Hour},
		Policies: map[string]consumer.Policy{
			"webhooks": webhooks,
			// An entry that cannot be judged holds its partition until an operator looks.
			"audit": {Tiers: retrytopics.Cautious, OnTerminal: consumer.Stop},
			// A click is tried once.
			"clicks": {Tiers: []time.Duration{}, OnExhausted: consumer.Discard, OnTerminal: consumer.Discard},
		},
	}
	if _, err := consumer.New(cfg); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Policy.Delays())
	fmt.Println(cfg.Policies["webhooks"].Delays())
	fmt.Println(cfg.Policies["audit"].Delays())
	fmt.Println(cfg.Policies["clicks"].Delays())
	// Output:
	// [5s 30s 5m0s]
	// [1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s]
	// [1m0s 10m0s 1h0m0s 4h0m0s 12h0m0s]
	// []
}

// Refused is an error as AWS sends it. HTTP status 400 means that the request is wrong, but the
// code may mean that it is not.
type Refused struct{ code string }

func (e Refused) Error() string     { return e.code }
func (e Refused) ErrorCode() string { return e.code }
func (Refused) HTTPStatusCode() int { return http.StatusBadRequest }

// Rules classify errors of other libraries, and Unknown is for errors that no rule matches.
func ExampleConfig_classifier() {
	cfg := consumer.Config{
		Classifier: classify.Classifier{
			Rules: []classify.Rule{
				classify.When(func(err error) bool {
					var api interface{ ErrorCode() string } // smithy.APIError has it
					return errors.As(err, &api) && api.ErrorCode() == "ResourceInUseException"
				}, classify.VerdictRetry, "aws.in-use"),
			},
			Unknown: classify.VerdictRetry, // default: terminal
		},
	}
	for _, err := range []error{Refused{"ResourceInUseException"}, Refused{"ValidationException"}, errors.New("who knows")} {
		r := cfg.Classifier.Classify(err)
		fmt.Println(r.Class, r.Verdict)
	}
	// Output:
	// aws.in-use retry
	// http.400 terminal
	// unclassified retry
}

// Order is the payload of these examples.
type Order struct {
	SKU   string `json:"sku"`
	Cents int    `json:"cents"`
}

// A typed handler. A record that cannot be decoded fails terminally, and goes to the dead-letter
// topic byte for byte.
func ExampleDecode() {
	handler := consumer.Decode(consumer.JSON[Order], func(_ context.Context, _ *kgo.Record, o Order) error {
		fmt.Printf("%d cents for a %s\n", o.Cents, o.SKU)
		return nil
	})
	for _, value := range []string{`{"sku":"teapot","cents":1900}`, `{"sku":`} {
		if err := handler(context.Background(), &kgo.Record{Topic: "orders", Value: []byte(value)}); err != nil {
			r := (&classify.Classifier{}).Classify(err)
			fmt.Println(r.Class, r.Verdict)
		}
	}
	// Output:
	// 1900 cents for a teapot
	// decode terminal
}

// A schema that is newer than the service has its own reason: a later version of the service
// redrives exactly these letters.
func ExampleDecode_unsupportedVersion() {
	type order struct {
		Schema struct{ Version int }
	}
	decode := func(ctx context.Context, r *kgo.Record) (order, error) {
		o, err := consumer.JSON[order](ctx, r)
		schema := o.Schema
		if err == nil {
			err = fmt.Errorf("schema %d is newer than this service", schema.Version)
		}
		if schema.Version > 7 {
			// terminal, class and reason unsupported-version
			return o, classify.UnsupportedVersion(err)
		}
		return o, nil
	}
	handler := consumer.Decode(decode, func(context.Context, *kgo.Record, order) error { return nil })
	err := handler(context.Background(), &kgo.Record{Topic: "orders", Value: []byte(`{"schema":{"version":8}}`)})
	r := (&classify.Classifier{}).Classify(err)
	fmt.Println(r.Class, r.Verdict)
	// Output: unsupported-version terminal
}

// handledKeys is a table with a unique key, in a transaction of a database.
type handledKeys map[any]bool

func (t handledKeys) Exec(_ context.Context, _ string, args ...any) (rows int, err error) {
	if t[args[0]] {
		return 0, uniqueViolation{}
	}
	t[args[0]] = true
	return 1, nil
}

// uniqueViolation is an error as pgx and lib/pq have it.
type uniqueViolation struct{}

func (uniqueViolation) Error() string    { return "duplicate key value violates unique constraint" }
func (uniqueViolation) SQLState() string { return "23505" }

// A record may be delivered more than once. A handler that must not act twice stores the record's
// key together with its work. If the key is there already, an earlier delivery did the work.
func ExampleDelivery_IdempotencyKey() {
	tx := handledKeys{}
	handler := func(ctx context.Context, r *kgo.Record) error {
		// The first statement of the transaction, so that no other unique violation is taken for
		// this one.
		_, err := tx.Exec(ctx, `INSERT INTO handled (key) VALUES ($1)`, consumer.DeliveryOf(ctx, r).IdempotencyKey())
		if classify.IsUniqueViolation(err) {
			return nil // done already
		}
		if err != nil {
			return err
		}
		fmt.Println("charged")
		return nil
	}
	r := &kgo.Record{Topic: "orders", Partition: 3, Offset: 7}
	fmt.Println(handler(context.Background(), r))
	fmt.Println(handler(context.Background(), r))
	// Output:
	// charged
	// <nil>
	// <nil>
}

// A tombstone, a record with a null value, is nil for a pointer type and an error for any other.
func ExampleJSON_tombstone() {
	o, err := consumer.JSON[*Order](context.Background(), &kgo.Record{Topic: "orders", Value: nil})
	fmt.Println(o == nil, err)
	_, err = consumer.JSON[Order](context.Background(), &kgo.Record{Topic: "orders", Value: nil})
	fmt.Println(err != nil)
	// Output:
	// true <nil>
	// true
}

// Messages of several types on one topic. A type without a handler is dead-lettered with reason
// unroutable, or treated as Otherwise says.
func ExampleMux() {
	mux := consumer.NewMux(consumer.ByHeader("type"))
	mux.Handle("placed", func(_ context.Context, r *kgo.Record) error {
		fmt.Printf("placed: %s\n", r.Value)
		return nil
	})
	mux.Handle("shipped", func(_ context.Context, r *kgo.Record) error {
		fmt.Printf("shipped: %s\n", r.Value)
		return nil
	})
	// consumer.Config{…, Handler: mux.Serve}
	for _, kind := range []string{"placed", "shipped", "praised"} {
		r := &kgo.Record{Topic: "orders", Value: []byte("order-7"), Headers: []kgo.RecordHeader{{Key: "type", Value: []byte(kind)}}}
		if err := mux.Serve(context.Background(), r); err != nil {
			result := (&classify.Classifier{}).Classify(err)
			fmt.Println(result.Class, result.Verdict)
		}
	}
	// Output:
	// placed: order-7
	// shipped: order-7
	// unroutable terminal
}

// A handler that must not act twice stores the key together with its work. The key is the same at
// every delivery, retries included.
func ExampleDeliveryOf() {
	brokers, stop := start("order-7")
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	// a table of the service's database, in the same transaction as the charge
	charged := map[string]bool{}
	c, err := consumer.New(consumer.Config{
		Group:  "billing",
		Topics: []string{"orders"},
		Kafka:  []kgo.Opt{brokers},
		Policy: consumer.Policy{Tiers: []time.Duration{100 * time.Millisecond}},
		Logger: slog.New(slog.DiscardHandler),
		Handler: func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
			key := facts.IdempotencyKey()
			fmt.Println(key, "attempt", facts.Attempt, "tier", facts.Tier)
			if charged[key] {
				fmt.Println("charged before")
				cancel()
				return nil
			}
			charged[key] = true
			return classify.Retryable(errors.New("the answer got lost behind the charge"))
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// billing/orders/0/0 attempt 1 tier 0s
	// billing/orders/0/0 attempt 2 tier 100ms
	// charged before
}

// Health reports what each lane does, and why it waits. The handler serves it as JSON, with 503 if
// an operator should look.
func ExampleConsumer_Health() {
	c, err := consumer.New(consumer.Config{
		Group:   "billing",
		Topics:  []string{"orders"},
		Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		Handler: func(context.Context, *kgo.Record) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("/health", c.HealthHandler())
	text, _ := json.Marshal(c.Health())
	fmt.Println(string(text))
	// Output:
	// {"ok":true,"started":false,"lanes":[],"group":{"joined":false}}
}

// pager is a hook that alerts about dead letters.
type pager struct{ rings chan string }

// OnDeadLettered must not block: all copies wait for it. So a ring without an answer is dropped.
func (p pager) OnDeadLettered(e consumer.Routed) {
	select {
	case p.rings <- fmt.Sprintf("%s/%d/%d %s (%s: %s)", e.Record.Topic, e.Record.Partition, e.Record.Offset, e.Meta.Reason, e.Meta.Class, e.Meta.Message):
	default:
	}
}

// A hook has a method for each event that it wants. This one is called for dead letters, when they
// are safe.
func ExampleHook() {
	brokers, stop := start("A-1")
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rings := make(chan string, 100)
	c, err := consumer.New(consumer.Config{
		Group:   "billing",
		Topics:  []string{"orders"},
		Kafka:   []kgo.Opt{brokers},
		Handler: func(context.Context, *kgo.Record) error { return classify.As(errors.New("no such SKU"), "sku.unknown") },
		Hooks:   []consumer.Hook{pager{rings}},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		fmt.Println(<-rings)
		cancel()
	}()
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// orders/0/0 terminal (sku.unknown: no such SKU)
}

// Probes of a service. Liveness does not depend on the lanes, since a restart helps none of them.
func ExampleConsumer_HealthHandler() {
	c, err := consumer.New(consumer.Config{
		Group:   "billing",
		Topics:  []string{"orders"},
		Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		Handler: func(context.Context, *kgo.Record) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	// the process answers: that is all that liveness asks
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !c.Health().Started {
			http.Error(w, "no assignment yet", http.StatusServiceUnavailable)
		}
	})
	mux.Handle("/health", c.HealthHandler()) // for monitors and people

	for _, path := range []string{"/livez", "/readyz", "/health"} { // before Run
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(w.Code, path)
	}
	// Output:
	// 200 /livez
	// 503 /readyz
	// 200 /health
}

// start starts a broker in this process with an orders topic of one partition, and these values on
// it, each with the key that stands before an equals sign.
func start(values ...string) (brokers kgo.Opt, stop func()) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		panic(err)
	}
	brokers = kgo.SeedBrokers(broker.ListenAddrs()...)
	cl, err := kgo.NewClient(brokers)
	if err != nil {
		panic(err)
	}
	defer cl.Close()
	for _, v := range values {
		r := &kgo.Record{Topic: "orders", Value: []byte(v)}
		if key, value, ok := strings.Cut(v, "="); ok {
			r.Key, r.Value = []byte(key), []byte(value)
		}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			panic(err)
		}
	}
	return brokers, broker.Close
}

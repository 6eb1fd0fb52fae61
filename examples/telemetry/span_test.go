package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

func TestEveryAttemptIsASpanThatSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt < 3 {
				return classify.As(classify.Retryable(errors.New("card 4111111111111111 is busy")), "payment.busy")
			}
			return nil
		})
		cfg.ErrorText = withoutCard
		c := k.Run(cfg)
		r := k.Produce(order("busy"))[0]
		k.Handled(r, 1)
		stop(t, c)

		spans := o.ended()
		if got, want := outcomes(spans), []string{"retried payment.busy", "5s retried payment.busy", "30s handled"}; !slices.Equal(got, want) {
			t.Fatalf("spans %q, want %q", got, want)
		}
		for i, s := range spans {
			if got, want := s.Name(), "process orders"; got != want {
				t.Errorf("span %d: name %q, want %q", i, got, want)
			}
			if got, want := s.SpanKind(), trace.SpanKindConsumer; got != want {
				t.Errorf("span %d: kind %v, want %v", i, got, want)
			}
			if s.Parent().IsValid() {
				t.Errorf("span %d has a parent, want a trace of its own: attempts may be hours apart", i)
			}
			set := attribute.NewSet(s.Attributes()...)
			for key, want := range map[attribute.Key]attribute.Value{
				"messaging.system":                   attribute.StringValue("kafka"),
				"messaging.operation.name":           attribute.StringValue("process"),
				"messaging.operation.type":           attribute.StringValue("process"),
				"messaging.destination.name":         attribute.StringValue("orders"),
				"messaging.destination.partition.id": attribute.StringValue("1"),
				"messaging.consumer.group.name":      attribute.StringValue("billing"),
				"messaging.kafka.offset":             attribute.Int64Value(r.Offset),
			} {
				if got, ok := set.Value(key); !ok || got != want {
					t.Errorf("span %d: %s is %v %s, want %v %s", i, key, got.Type(), got.String(), want.Type(), want.String())
				}
			}
			want := sdktrace.Status{Code: codes.Error, Description: "card **** is busy"}
			if i == 2 {
				want = sdktrace.Status{}
			}
			if got := s.Status(); got != want {
				t.Errorf("span %d: status %v, want %v", i, got, want)
			}
		}
	})
}

func TestASpanFollowsTheProducersAndTheAttemptBefore(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		c := k.Run(o.config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) }))
		r := k.Produce(order("busy"))[0]
		first := k.Parked(r, 5*time.Second, "unclassified")
		letter := k.DeadLettered(r, headers.ReasonExhausted)
		stop(t, c)

		spans := o.ended()
		if len(spans) != 4 {
			t.Fatalf("%d spans, want 4", len(spans))
		}
		for i, s := range spans {
			links := s.Links()
			if want := min(i+1, 2); len(links) != want {
				t.Fatalf("span %d has %d links, want %d", i, len(links), want)
			}
			if got := parent(links[0].SpanContext); got != producer {
				t.Errorf("span %d follows %s, want the producer's %s", i, got, producer)
			}
			if got := links[0].SpanContext.TraceState().String(); got != vendor {
				t.Errorf("span %d: the link's trace state is %q, want %q", i, got, vendor)
			}
			if i > 0 {
				if got, want := parent(links[1].SpanContext), parent(spans[i-1].SpanContext()); got != want {
					t.Errorf("span %d follows %s, want the attempt before, %s", i, got, want)
				}
			}
		}
		if got, want := first.TraceParent, parent(spans[0].SpanContext()); got != want {
			t.Errorf("dlq-traceparent of the first copy is %q, want %q", got, want)
		}
		if got, want := letter.TraceParent, parent(spans[3].SpanContext()); got != want {
			t.Errorf("dlq-traceparent of the dead letter is %q, want %q", got, want)
		}
	})
}

// parent returns a span as a traceparent.
func parent(s trace.SpanContext) string {
	return "00-" + s.TraceID().String() + "-" + s.SpanID().String() + "-" + s.TraceFlags().String()
}

// links returns the linked spans as traceparents.
func links(s sdktrace.ReadOnlySpan) (all []string) {
	for _, l := range s.Links() {
		all = append(all, parent(l.SpanContext))
	}
	return all
}

// The in-place retries of another record in the same unit do not count for this one.
func TestARunInPlaceIsFollowedByItsOwnRecordsRunsAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			if string(r.Value) == "busy" {
				return classify.As(classify.Retryable(errBusy), "busy")
			}
			return nil
		})
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, MaxAttempts: 1, Immediate: consumer.Immediate{Attempts: 1}}
		c := k.Run(cfg)
		records := k.Produce(order("busy"), order("fine"), order("busy"), order("fine"))
		k.Handled(records[3], 1)
		stop(t, c)
		spans := o.ended()
		for i, want := range []int{1, 2, 1, 1, 2, 1} {
			if i >= len(spans) || len(spans[i].Links()) != want {
				t.Fatalf("%d spans, the links of the %d. are %q, want %d", len(spans), i+1, links(spans[min(i, len(spans)-1)]), want)
			}
		}
	})
}

func TestBrokenTraceHeadersGiveNoLinkAndNoTrouble(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		c := k.Run(o.config(func(context.Context, *kgo.Record) error { return nil }))
		for _, value := range []string{"", "00", "zz-0-0-0", strings.Repeat("00-", 1000), "00-00000000000000000000000000000000-0000000000000000-01"} {
			r := &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte(value)}}}
			k.Handled(k.Produce(r)[0], 1)
		}
		stop(t, c)
		for i, s := range o.ended() {
			if n := len(s.Links()); n != 0 {
				t.Errorf("span %d has %d links, want none", i, n)
			}
			if got := of(s, "messaging.kafka.message.tombstone"); got != "true" {
				t.Errorf("span %d of a record without a value: tombstone is %q", i, got)
			}
		}
	})
}

func TestTheHandlerFindsItsSpanAndItsFactsInTheContext(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		c := k.Run(o.config(func(ctx context.Context, r *kgo.Record) error {
			derived, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			trace.SpanFromContext(derived).SetAttributes(attribute.String("mine", string(r.Value)))
			_, child := o.tracers.Tracer("test").Start(derived, "charge")
			child.End()
			if got := consumer.DeliveryOf(derived, r); got.Attempt != 1 || got.IdempotencyKey() != "billing/orders/1/0" {
				t.Errorf("facts by a derived context: attempt %d, key %s", got.Attempt, got.IdempotencyKey())
			}
			<-derived.Done() // after a second, before the attempt's own deadline
			if got := context.Cause(ctx); got != nil {
				t.Errorf("the handler's context ended: %v", got)
			}
			return nil
		}))
		k.Handled(k.Produce(order("x"))[0], 1)
		stop(t, c)
		spans := o.ended()
		if len(spans) != 2 {
			t.Fatalf("%d spans, want the attempt's and its child's", len(spans))
		}
		attempt, child := spans[0], spans[1]
		if attempt.Name() != "process orders" {
			attempt, child = child, attempt
		}
		if got := of(attempt, "mine"); got != "x" {
			t.Errorf("the handler's own attribute is %q, want x", got)
		}
		if child.Parent().SpanID() != attempt.SpanContext().SpanID() {
			t.Error("what the handler starts is no child of the attempt's span")
		}
	})
}

func TestRunsInPlaceAreSpansEach(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		runs := 0
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			if runs++; runs%3 != 0 {
				return classify.As(classify.Retryable(errBusy), "busy")
			}
			if string(r.Value) == "panics" {
				panic("third run")
			}
			return nil
		})
		cfg.Policy = consumer.Policy{Immediate: consumer.Immediate{Attempts: 2}}
		c := k.Run(cfg)
		k.Handled(k.Produce(order("fine"))[0], 1)
		k.DeadLettered(k.Produce(order("panics"))[0], headers.ReasonPanic)
		stop(t, c)
		spans := o.ended()
		got := outcomes(spans)
		want := []string{"retried busy", "retried busy", "handled", "retried busy", "retried busy", "dead_lettered panic.string"}
		if !slices.Equal(got, want) {
			t.Fatalf("spans %q, want %q", got, want)
		}
		for i, s := range spans {
			follows := []string{producer}
			if i%3 > 0 {
				follows = append(follows, parent(spans[i-1].SpanContext()))
			}
			if got := links(s); !slices.Equal(got, follows) {
				t.Errorf("run %d follows %q, want the producer's span, and from the second on the run before: %q", i, got, follows)
			}
		}
		o.want("messaging.process.duration", map[string]int64{
			"error.type=busy outcome=retried": 4,
			"":                                1,
			"error.type=panic.string outcome=dead_lettered": 1,
		})
		o.want("siding.handled.records", map[string]int64{"": 1})
	})
}

func TestNoSpanStaysOpenHoweverTheHandlerEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler consumer.Handler
		policy  consumer.Policy
		want    string
		status  codes.Code
	}{
		"a panic":     {handler: func(context.Context, *kgo.Record) error { panic(errBusy) }, want: "dead_lettered panic.errors.errorString", status: codes.Error},
		"Goexit":      {handler: func(context.Context, *kgo.Record) error { runtime.Goexit(); return nil }, want: "dead_lettered panic.string", status: codes.Error},
		"a discard":   {handler: func(context.Context, *kgo.Record) error { return classify.As(classify.Discard(errBusy), "old") }, want: "discarded old", status: codes.Error},
		"a stop":      {handler: func(context.Context, *kgo.Record) error { return classify.As(errBusy, "bad") }, policy: consumer.Policy{OnTerminal: consumer.Stop}, want: "stopped bad", status: codes.Error},
		"the timeout": {handler: func(ctx context.Context, _ *kgo.Record) error { <-ctx.Done(); return classify.Terminal(ctx.Err()) }, want: "dead_lettered timeout", status: codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
				cfg := o.config(test.handler)
				cfg.Policy = test.policy
				c := k.Run(cfg)
				k.Produce(order("x"))
				time.Sleep(2 * time.Minute)
				stop(t, c)
				spans := o.ended()
				if got := outcomes(spans); !slices.Equal(got, []string{test.want}) {
					t.Fatalf("spans %q, want %q", got, test.want)
				}
				if got := spans[0].Status().Code; got != test.status {
					t.Errorf("status %v, want %v", got, test.status)
				}
			})
		})
	}
}

// A cancelled attempt is neither a failure nor an attempt, in telemetry too.
func TestADrainedAttemptEndsItsSpanWithoutAnError(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		var running atomic.Int32
		cfg := o.config(func(ctx context.Context, r *kgo.Record) error {
			if running.Add(1) == 1 {
				panic("the second is in a worker's next round")
			}
			<-ctx.Done()
			if string(r.Value) == "panics" {
				panic("cut off")
			}
			return ctx.Err()
		})
		cfg.Policy = consumer.Policy{HandlerTimeout: -1, Immediate: consumer.Immediate{Attempts: 1}}
		c := k.Run(cfg)
		first := k.Produce(order("first"))[0]
		k.DeadLettered(first, headers.ReasonPanic)
		k.Produce(order("waits"))
		k.Produce(&kgo.Record{Topic: "orders", Key: []byte("customer-2"), Value: []byte("panics")})
		for running.Load() < 3 {
			time.Sleep(time.Second)
		}
		stop(t, c)
		spans := o.ended()
		if got, want := outcomes(spans), []string{"dead_lettered panic.string", "drained", "drained"}; !slices.Equal(got, want) {
			t.Fatalf("spans %q, want %q", got, want)
		}
		for _, s := range spans[1:] {
			if got := s.Status(); got != (sdktrace.Status{}) {
				t.Errorf("status %v, want none", got)
			}
		}
		o.want("messaging.process.duration", map[string]int64{"error.type=panic.string outcome=dead_lettered": 1})
	})
}

// An exporter refuses a whole batch of spans if one text is not UTF-8.
func TestWhateverTheErrorSaysTheStatusIsShortValidText(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(context.Context, *kgo.Record) error {
			return classify.Retryable(errors.New("answer \xff\xfe of " + strings.Repeat("é", 10_000)))
		})
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{}, Immediate: consumer.Immediate{Attempts: 1}}
		c := k.Run(cfg)
		k.DeadLettered(k.Produce(order("x"))[0], headers.ReasonExhausted)
		stop(t, c)
		spans := o.ended()
		if len(spans) != 2 {
			t.Fatalf("%d spans, want 2", len(spans))
		}
		for i, s := range spans {
			if d := s.Status().Description; !utf8.ValidString(d) || len(d) > headers.MaxMessage+8 || !strings.HasPrefix(d, "answer ") {
				t.Errorf("span %d: %d bytes, valid %v: %.40q", i, len(d), utf8.ValidString(d), d)
			}
		}
	})
}

func TestASpanThatIsNotSampledStillLeadsFromAttemptToAttempt(t *testing.T) {
	t.Parallel()
	for name, sampler := range map[string]sdktrace.Sampler{
		"never": sdktrace.NeverSample(), "by the parent": sdktrace.ParentBased(sdktrace.NeverSample()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, k *consumertest.Kafka, _ *telemetry) {
				o := newTelemetry(t, sdktrace.WithSampler(sampler))
				var at []trace.SpanContext
				c := k.Run(o.config(func(ctx context.Context, _ *kgo.Record) error {
					at = append(at, trace.SpanContextFromContext(ctx))
					return classify.Retryable(errBusy)
				}))
				r := k.Produce(order("busy"))[0]
				letter := k.DeadLettered(r, headers.ReasonExhausted)
				stop(t, c)
				if n := len(o.ended()); n != 0 {
					t.Errorf("%d spans, want none", n)
				}
				if len(at) != 4 {
					t.Fatalf("%d attempts, want 4", len(at))
				}
				for i, s := range at {
					if !s.IsValid() || s.IsSampled() {
						t.Errorf("attempt %d in span %v, sampled %v; want a valid one, not sampled", i, s.SpanID(), s.IsSampled())
					}
				}
				if got, want := letter.TraceParent, parent(at[3]); got != want {
					t.Errorf("dlq-traceparent %q, want %q", got, want)
				}
				o.want("messaging.process.duration", map[string]int64{
					"error.type=unclassified outcome=retried":               1,
					"error.type=unclassified outcome=retried tier=5s":       1,
					"error.type=unclassified outcome=retried tier=30s":      1,
					"error.type=unclassified outcome=dead_lettered tier=5m": 1,
				})
			})
		})
	}
}

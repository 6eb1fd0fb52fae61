package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// tracer is a hook that behaves like kotel: it starts a span for each fetched record, in the
// record's context. For each produced record it writes a span to the headers, in place if there is
// one already.
type tracer struct {
	trace.Tracer
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered.
func (h tracer) OnFetchRecordBuffered(r *kgo.Record) {
	var span trace.Span
	r.Context, span = h.Start(context.Background(), r.Topic+" receive")
	span.End()
}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (h tracer) OnProduceRecordBuffered(r *kgo.Record) {
	ctx, span := h.Start(r.Context, r.Topic+" publish")
	r.Context = ctx
	span.End()
	for _, key := range []string{"traceparent", "tracestate"} {
		value := []byte("hook=1")
		if key == "traceparent" {
			value = []byte(parent(span.SpanContext()))
		}
		if i := slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == key }); i >= 0 {
			r.Headers[i].Value = value
		} else {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: value})
		}
	}
}

// hooks are tracers that users pass to their clients.
var hooks = map[string]func(*telemetry) []kgo.Hook{
	"kotel": func(o *telemetry) []kgo.Hook {
		propagators := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
		return kotel.NewKotel(
			kotel.WithTracer(kotel.NewTracer(kotel.TracerProvider(o.tracers), kotel.TracerPropagator(propagators))),
			kotel.WithMeter(kotel.NewMeter(kotel.MeterProvider(o.meters))),
		).Hooks()
	},
	"one that appends tracestate": func(o *telemetry) []kgo.Hook { return []kgo.Hook{tracer{o.tracers.Tracer("hook")}} },
}

// Trap 12: a tracer in the client's hooks rewrites traceparent in each copy, in place in the slice
// of headers, and the producer's trace is lost at the first retry.
func TestTheProducersTraceHeadersSurviveEveryHopAndTheUsersTracer(t *testing.T) {
	t.Parallel()
	for name, of := range hooks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			survives(t, of)
		})
	}
}

func survives(t *testing.T, of func(*telemetry) []kgo.Hook) {
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		hooked := newTelemetry(t)
		traced, plain := order("traced"), order("plain")
		traced.Headers = append(traced.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte("a second one")}, kgo.RecordHeader{Key: "x", Value: nil})
		plain.Headers = nil
		want := map[string][]kgo.RecordHeader{"traced": slices.Clone(traced.Headers), "plain": nil}

		seen := map[string]int{}
		var failing, failed atomic.Bool
		cfg := o.config(func(ctx context.Context, r *kgo.Record) error {
			seen[string(r.Value)]++
			if failed.CompareAndSwap(false, true) {
				failing.Store(true)
			}
			if !sameHeaders(r.Headers, want[string(r.Value)]) {
				t.Errorf("attempt %d of %s has headers %q, want %q", consumer.DeliveryOf(ctx, r).Attempt, r.Value, r.Headers, want[string(r.Value)])
			}
			return classify.Retryable(errBusy)
		})
		cfg.Kafka = []kgo.Opt{kgo.WithHooks(of(hooked)...)}

		// The broker refuses the first copy. The second is another record, made of the same
		// headers.
		k.Cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if failing.CompareAndSwap(true, false) {
				return refused(req.(*kmsg.ProduceRequest)), nil, true
			}
			return nil, nil, false
		})
		c := k.Run(cfg)
		records := k.Produce(traced, plain)
		for _, r := range records {
			k.DeadLettered(r, headers.ReasonExhausted)
		}
		stop(t, c)

		if failing.Load() {
			t.Error("no copy was refused")
		}
		if seen["traced"] != 4 || seen["plain"] != 4 {
			t.Errorf("attempts %v, want 4 each", seen)
		}
		letters := 0
		for l, err := range dlq.Read(context.Background(), "orders.dlq", dlq.Filter{}, dlq.Cursor{}, k.Opts()...) {
			must(t, err)
			letters++
			value := string(l.Record.Value)
			if got := headers.Strip(l.Record.Headers); !sameHeaders(got, want[value]) {
				t.Errorf("dead letter %s has headers %q, want %q", value, got, want[value])
			}
		}
		if letters != 2 {
			t.Errorf("%d dead letters, want 2", letters)
		}
		if n := len(hooked.ended()); n < 16 {
			t.Errorf("the hook made %d spans, want those of 8 reads and of 8 copies", n)
		}
		for i, s := range o.ended() {
			if s.Parent().IsValid() {
				t.Errorf("span %d is a child of the hook's, want a trace of its own", i)
			}
		}
	})
}

// refused answers a produce request with an error for each partition.
func refused(req *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			part := kmsg.NewProduceResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func sameHeaders(a, b []kgo.RecordHeader) bool {
	return slices.EqualFunc(a, b, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) })
}

// The user has a tracer, but siding has no SDK: the handler sees the span of the user's tracer.
func TestAHooksSpanIsNotHiddenWhereSidingHasNone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, _ *telemetry) {
		hooked := newTelemetry(t)
		cfg := consumer.Config{Group: "billing", Topics: []string{"orders"}, Policy: minute}
		var at []trace.SpanContext
		cfg.Handler = func(ctx context.Context, _ *kgo.Record) error {
			at = append(at, trace.SpanContextFromContext(ctx))
			return classify.As(classify.Retryable(errBusy), "busy")
		}
		cfg.Kafka = []kgo.Opt{kgo.WithHooks(tracer{hooked.tracers.Tracer("hook")})}
		c := k.Run(cfg)
		meta := k.Parked(k.Produce(order("busy"))[0], time.Minute, "busy")
		stop(t, c)
		hooked.ended()
		if meta.TraceParent != "" {
			t.Errorf("dlq-traceparent %q, want none: no span was made for the attempt", meta.TraceParent)
		}
		if len(at) != 1 || !at[0].IsSampled() {
			t.Errorf("the handler saw %v, want the hook's span", at)
		}
	})
}

// card must not be visible anywhere.
const card = "4111111111111111"

// The traces of a record's failure: copies, log lines, spans, metrics, health, and the arguments of
// hooks.
func TestWhatErrorTextKeepsOutIsNowhere(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		var left notes
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			err := fmt.Errorf("charge: %w", errors.New("card "+card+" is refused"))
			switch string(r.Value) {
			case "busy":
				return classify.Retryable(err)
			case "old":
				return classify.Discard(err)
			case "late":
				return classify.RetryAfter(errors.Join(errBusy, err), time.Minute)
			case "panics":
				panic(err)
			case "panics with text":
				panic("card " + card + " is refused")
			}
			return err
		})
		cfg.ErrorText = withoutCard
		cfg.Logger = slog.New(slog.NewTextHandler(&left, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Hooks = []consumer.Hook{hookRecorder{&left}}
		cfg.Policy = consumer.Policy{Tiers: minute.Tiers, Immediate: consumer.Immediate{Attempts: 1}}
		c := k.Run(cfg)
		records := k.Produce(order("busy"), order("bad"), order("old"), order("late"), order("panics"), order("panics with text"))
		for i, reason := range []headers.Reason{headers.ReasonExhausted, headers.ReasonTerminal, "", headers.ReasonExhausted, headers.ReasonPanic, headers.ReasonPanic} {
			if reason == "" {
				continue
			}
			k.Parked(records[0], time.Minute, "")
			if m := k.DeadLettered(records[i], reason); !strings.Contains(m.Message, "card **** is refused") || strings.Contains(fmt.Sprintf("%+v", m), card) {
				t.Errorf("the dead letter of %s says %+v", records[i].Value, m)
			}
		}
		fmt.Fprintf(&left, "%+v\n%+v\n", c.Health(), o.metrics())
		stop(t, c)
		statuses := 0
		for _, s := range o.ended() {
			if strings.Contains(s.Status().Description, "card **** is refused") {
				statuses++
			}
			fmt.Fprintf(&left, "%s %+v %+v %+v\n", s.Name(), s.Status(), s.Attributes(), s.Events())
		}
		for line := range strings.Lines(left.String()) {
			if strings.Contains(line, card) {
				t.Errorf("left behind: %s", line)
			}
		}
		if statuses < 8 || !strings.Contains(left.String(), "card **** is refused") {
			t.Errorf("%d spans have the text that is let through, want those of 6 records and of their retries; and logs:\n%s", statuses, &left)
		}
	})
}

// notes collects the traces, from any goroutine.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// hookRecorder records the arguments of hooks.
type hookRecorder struct{ left *notes }

func (h hookRecorder) OnDeadLettered(e consumer.Routed) {
	fmt.Fprintf(h.left, "dead-lettered %+v %q\n", e.Meta, e.Record.Headers)
}

func (h hookRecorder) OnParked(e consumer.Routed) {
	fmt.Fprintf(h.left, "parked %+v %q\n", e.Meta, e.Record.Headers)
}

func (h hookRecorder) OnDiscarded(e consumer.Routed) {
	fmt.Fprintf(h.left, "discarded %+v %q\n", e.Meta, e.Record.Headers)
}

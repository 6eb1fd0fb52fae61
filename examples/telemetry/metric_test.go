package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// The usual attributes are absent: the tier of a source, the outcome of a run that was handled.
func TestMetricsTellWhatRanWhatWaitsAndWhatWentWhere(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(ctx context.Context, r *kgo.Record) error {
			time.Sleep(time.Second)
			if consumer.DeliveryOf(ctx, r).Tier > 0 {
				time.Sleep(9 * time.Second)
			}
			switch {
			case string(r.Value) == "busy" && consumer.DeliveryOf(ctx, r).Tier == 0:
				return classify.As(classify.Retryable(errBusy), "busy")
			case string(r.Value) == "broken":
				return classify.As(errors.New("no such SKU"), "orders.sku")
			case string(r.Value) == "old":
				return classify.As(classify.Discard(errors.New("too old")), "orders.old")
			}
			return nil
		})
		cfg.Policy = minute
		c := k.Run(cfg)
		records := k.Produce(order("busy"), order("broken"), order("old"), order("fine"), order("busy"))
		k.Handled(records[3], 1)
		parked := k.Parked(records[0], time.Minute, "busy")
		k.Parked(records[4], time.Minute, "busy")
		time.Sleep(3 * time.Second) // the lane reads its tier
		synctest.Wait()

		o.want("siding.parked.records", map[string]int64{"tier=1m": 2})
		o.want("siding.parked.oldest_due", map[string]int64{"tier=1m": parked.NotBefore.Unix()})
		o.want("siding.lanes", map[string]int64{"lane.state=running": 1, "lane.state=waiting": 1})
		o.want("siding.forwards.inflight", map[string]int64{"": 0})
		o.want("siding.offset.gaps", map[string]int64{"": 0, "tier=1m": 0})
		o.want("siding.lag", map[string]int64{"": 0, "tier=1m": 2})
		o.want("siding.delivery.lateness", map[string]int64{})
		o.want("siding.handled.records", map[string]int64{"": 1})
		o.want("siding.routed.records", map[string]int64{
			"error.type=busy reason= to=1m":                2,
			"error.type=orders.sku reason=terminal to=dlq": 1,
			"error.type=orders.old reason= to=discarded":   1,
		})

		k.Handled(records[0], 1)
		k.Handled(records[4], 1)
		synctest.Wait()
		o.want("siding.parked.records", map[string]int64{"tier=1m": 0})
		o.want("siding.parked.oldest_due", map[string]int64{})
		o.want("siding.delivery.lateness", map[string]int64{"tier=1m": 2})
		o.want("messaging.process.duration", map[string]int64{
			"":                                1,
			"tier=1m":                         2,
			"error.type=busy outcome=retried": 2,
			"error.type=orders.sku outcome=dead_lettered": 1,
			"error.type=orders.old outcome=discarded":     1,
		})
		for _, p := range o.histogram("messaging.process.duration") {
			want := 1.0
			if tier, _ := p.Attributes.Value("siding.tier"); tier.AsString() != "" {
				want = 10
			}
			if mean := p.Sum / float64(p.Count); mean != want {
				t.Errorf("a run took %v s on average, want the %v s that the handler took", mean, want)
			}
		}
		for _, p := range o.histogram("siding.delivery.lateness") {
			// The second was due 4 s after the first, which took 10 s.
			if low, _ := p.Min.Value(); low < 0 || low > 0.1 || p.Sum < 5.9 || p.Sum > 6.1 {
				t.Errorf("lateness from %v s, %v s in sum; want hardly any, and 6 s", low, p.Sum)
			}
		}
		k.Handled(k.Produce(order("fine"))[0], 1)
		stop(t, c)
		o.want("siding.lanes", map[string]int64{})
		o.want("siding.handled.records", map[string]int64{"": 4}) // also after the last collection
	})
}

// A run is measured when it ends, not at the end of its unit.
func TestARunThatHangsDoesNotHideThoseBeforeIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, _ *telemetry) {
		o := newTelemetry(t, sdktrace.WithSampler(sdktrace.NeverSample()))
		release := make(chan struct{})
		c := k.Run(o.config(func(_ context.Context, r *kgo.Record) error {
			if string(r.Value) == "slow" {
				<-release
			}
			return nil
		}))
		k.Produce(order("fine"), order("fine"), order("slow"), order("fine"))
		time.Sleep(10 * time.Second)
		o.want("messaging.process.duration", map[string]int64{"": 2})
		close(release)
		synctest.Wait() // a consumer that drains begins no further record
		stop(t, c)
		o.want("messaging.process.duration", map[string]int64{"": 4})
	})
}

// histogram returns the series of a histogram.
func (o *telemetry) histogram(name string) []metricdata.HistogramDataPoint[float64] {
	o.Helper()
	for _, m := range o.metrics() {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
			return h.DataPoints
		}
	}
	o.Fatalf("no histogram %s", name)
	return nil
}

func TestCopiesWithoutAnAnswerAndGapsShow(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		release := make(chan struct{})
		var silent atomic.Bool // the broker
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			switch string(r.Value) {
			case "slow":
				<-release
			case "broken":
				return errors.New("no such SKU")
			case "broken, late":
				silent.Store(true)
				return errors.New("no such SKU")
			}
			return nil
		})
		cfg.Order, cfg.Policy = consumer.OrderNone, consumer.Policy{Tiers: []time.Duration{}}
		k.Run(cfg)
		records := k.Produce(order("slow"), order("fine"), order("fine"), order("broken"))
		k.DeadLettered(records[3], headers.ReasonTerminal)
		synctest.Wait()
		o.want("siding.offset.gaps", map[string]int64{"": 3}) // after the slow record
		o.want("siding.lag", map[string]int64{"": 4})         // with it

		// A broker accepts a copy and does not answer.
		answer := make(chan struct{})
		k.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			if !silent.Load() {
				k.Cluster.KeepControl()
				return nil, nil, false
			}
			k.Cluster.SleepControl(func() { <-answer })
			return nil, nil, false
		})
		again := k.Produce(order("broken, late"))[0]
		time.Sleep(time.Second)
		o.want("siding.forwards.inflight", map[string]int64{"": 1})
		close(release)
		close(answer)
		k.DeadLettered(again, headers.ReasonTerminal)
		time.Sleep(time.Second)
		o.want("siding.offset.gaps", map[string]int64{"": 0})
		o.want("siding.lag", map[string]int64{"": 0})
		o.want("siding.forwards.inflight", map[string]int64{"": 0})
	})
}

// A service may run several consumers, of one group or of several.
func TestConsumersOfOneProcessAddUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		k.CreateTopic("refunds", 3)
		handler := func(context.Context, *kgo.Record) error { return nil }
		for _, topic := range []string{"orders", "refunds"} {
			cfg := o.config(handler)
			cfg.Topics = []string{topic}
			k.Run(cfg)
		}
		audit := o.config(handler)
		audit.Group = "audit"
		k.Run(audit)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		got := map[string]int64{}
		for _, m := range o.metrics() {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "siding.lanes" {
				for _, p := range sum.DataPoints {
					group, _ := p.Attributes.Value("messaging.consumer.group.name")
					got[group.AsString()] += p.Value
				}
			}
		}
		if want := map[string]int64{"billing": 5, "audit": 2}; !maps.Equal(got, want) {
			t.Errorf("lanes by group %v, want %v", got, want)
		}
	})
}

// A class that contains a record's id would create a time series for each record.
func TestClassesBeyondAHundredCountAsOther(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			return classify.As(errors.New("no such order"), "order."+string(r.Value))
		})
		cfg.Policy.Breaker.Off = true // it would hold the records
		c := k.Run(cfg)
		var records []*kgo.Record
		for i := range 130 {
			records = append(records, order(fmt.Sprint(i)))
		}
		records = k.Produce(append(records, order("5"), order("129"))...)
		k.DeadLettered(records[len(records)-1], headers.ReasonTerminal)
		stop(t, c)
		for _, name := range []string{"siding.routed.records", "messaging.process.duration"} {
			series := o.series(name)
			if len(series) != 101 {
				t.Errorf("%s: %d series, want 100 classes and the others", name, len(series))
			}
			for with, n := range series {
				want := int64(1)
				switch {
				case strings.Contains(with, "error.type=other "):
					want = 31
				case strings.Contains(with, "error.type=order.5 "):
					want = 2
				}
				if n != want {
					t.Errorf("%s{%s} is %d, want %d", name, with, n, want)
				}
			}
		}
		// Spans need no bound: each is unique.
		if spans := o.ended(); of(spans[129], "error.type") != "order.129" {
			t.Errorf("the 130th span's class is %s, want its own", of(spans[129], "error.type"))
		}
	})
}

func TestARecordWithBrokenHeadersIsCounted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(context.Context, *kgo.Record) error { return nil })
		cfg.Policy = minute
		c := k.Run(cfg)
		k.Produce(&kgo.Record{Topic: "orders.retry.1m", Value: []byte("whose?")})
		time.Sleep(10 * time.Second)
		stop(t, c)
		o.want("siding.routed.records", map[string]int64{"error.type=" + headers.ClassMalformed + " reason=malformed to=dlq": 1})
		if n := len(o.ended()); n != 0 {
			t.Errorf("%d spans, want none: nothing ran", n)
		}
	})
}

// A slow bucket of the histogram links to the trace of a slow attempt.
func TestAMeasurementLeadsToItsSpan(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(busyOnce)
		cfg.Policy = minute
		c := k.Run(cfg)
		k.Handled(k.Produce(order("busy"))[0], 1)
		stop(t, c)
		ids := map[string]bool{}
		for _, s := range o.ended() {
			id := s.SpanContext().SpanID()
			ids[string(id[:])] = true
		}
		for name, want := range map[string]int{"messaging.process.duration": 2, "siding.delivery.lateness": 1} {
			found := 0
			for _, p := range o.histogram(name) {
				for _, e := range p.Exemplars {
					if ids[string(e.SpanID)] {
						found++
					}
				}
			}
			if found != want {
				t.Errorf("%s has %d exemplars of the attempts' spans, want %d", name, found, want)
			}
		}
	})
}

// A view that drops one instrument leaves the others.
func TestLatenessIsMeasuredWithoutDurations(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		o.reader = sdkmetric.NewManualReader()
		o.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader), sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: "messaging.process.duration"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}})))
		cfg := o.config(busyOnce)
		cfg.Policy = minute
		c := k.Run(cfg)
		k.Handled(k.Produce(order("busy"))[0], 1)
		stop(t, c)
		o.want("siding.delivery.lateness", map[string]int64{"tier=1m": 1})
		o.want("messaging.process.duration", map[string]int64{})
	})
}

// Without spans and durations, what the alerts and the other rows of the board read is still there.
func TestAttemptTelemetryOffLeavesTheOtherMetrics(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(busyOnce)
		cfg.Policy = minute
		cfg.AttemptTelemetryOff = true
		c := k.Run(cfg)
		records := k.Produce(order("busy"), order("busy"))
		for _, r := range records {
			if copied := k.Parked(r, time.Minute, ""); copied.TraceParent != "" {
				t.Errorf("a copy has the span %s, want none", copied.TraceParent)
			}
			k.Handled(r, 1)
		}
		synctest.Wait()
		o.want("messaging.process.duration", map[string]int64{})
		o.want("siding.handled.records", map[string]int64{"": 2})
		o.want("siding.routed.records", map[string]int64{"error.type=unclassified reason= to=1m": 2})
		o.want("siding.delivery.lateness", map[string]int64{"tier=1m": 2})
		o.want("siding.lag", map[string]int64{"": 0, "tier=1m": 0})
		stop(t, c)
		if spans := o.spans.Started(); len(spans) > 0 {
			t.Errorf("%d spans, want none", len(spans))
		}
	})
}

func TestWhatRetentionDeletedUnreadIsCounted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		cfg := o.config(func(context.Context, *kgo.Record) error { return nil })
		c := k.Run(cfg)
		k.Handled(k.Produce(order("read"))[0], 1)
		stop(t, c)
		records := k.Produce(order("lost"), order("lost"), order("lost"), order("kept"))

		cl, err := kgo.NewClient(k.Opts()...)
		must(t, err)
		defer cl.Close()
		kept := records[3]
		_, err = kadm.NewClient(cl).DeleteRecords(t.Context(), kadm.Offsets{"orders": {
			kept.Partition: {Topic: "orders", Partition: kept.Partition, At: kept.Offset},
		}})
		must(t, err)
		c = k.Run(cfg)
		k.Handled(kept, 1)
		stop(t, c)
		o.want("siding.expired.records", map[string]int64{"": 3})
	})
}

// A record that is too large for its tier is counted for its target and for where it went. Values
// are counted as omitted once they are written.
func TestRecordsThatAreTooLargeAreCounted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		for topic, limit := range map[string]string{"orders.retry.1m": "5000", "orders.dlq": "20000"} {
			must(t, k.Cluster.CreateTopic(topic, 2, map[string]string{"max.message.bytes": limit}))
		}
		cfg := o.config(func(context.Context, *kgo.Record) error { return classify.As(classify.Retryable(errBusy), "busy") })
		cfg.Policy = minute
		k.Run(cfg)
		sized := func(n int) *kgo.Record {
			value := make([]byte, n)
			_, _ = rand.NewChaCha8([32]byte{}).Read(value) // random: compression does not shrink it
			return order(string(value))
		}
		for _, r := range k.Produce(sized(10_000), sized(30_000), sized(40_000)) {
			k.DeadLettered(r, headers.ReasonTooLarge)
		}
		synctest.Wait()
		o.want("siding.routed.records", map[string]int64{
			"error.type=busy reason= to=1m":           3,
			"error.type=busy reason=too-large to=dlq": 3,
		})
		o.want("siding.omitted.values", map[string]int64{"": 2})
		o.want("siding.forwards.inflight", map[string]int64{"": 0})
	})
}

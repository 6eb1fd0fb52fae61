package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/session"
	"github.com/sidingkafka/siding/headers"
)

// observed keeps the last observed value of each instrument.
type observed struct {
	metricnoop.Observer
	values map[string]int64
}

func (o observed) ObserveInt64(i metric.Int64Observable, n int64, _ ...metric.ObserveOption) {
	o.values[i.(named).name] = n
}

// named is an instrument with only a name.
type named struct {
	metric.Int64Observable
	name string
}

// Copies of redrive name no due time. The metric took the 0 for no record at all. So it was absent
// while hundreds of overdue copies waited, or had the due time of a later record.
func TestTelemetry_FirstDueTimeOfCopiesDueAtOnce(t *testing.T) {
	written, never := time.Now().Add(-time.Hour), time.UnixMilli(0)
	type row struct {
		written time.Time
		due     []time.Time // by partition
		want    int64
	}
	each(t, map[string]row{
		"none waits":                         {},
		"redriven":                           {written: written, due: []time.Time{never}, want: written.Unix()},
		"overdue":                            {written: written, due: []time.Time{written.Add(-time.Hour)}, want: written.Unix() - 3600},
		"redriven, and a later one":          {written: written, due: []time.Time{never, written.Add(2 * time.Hour)}, want: written.Unix()},
		"redriven, the broker is in 1970":    {written: never, due: []time.Time{never}, want: 0},
		"and a later one, of another broker": {written: never, due: []time.Time{never, written.Add(2 * time.Hour)}, want: 0},
	}, func(t *testing.T, tt row) {
		c := idle(t, Config{}, func() { t.Error("a halted lane runs") })
		for p, due := range tt.due {
			l := held(c, int32(p), "m")
			l.mu.Lock()
			l.setState(laneHalted, "")
			l.mu.Unlock()
			records := make([]*kgo.Record, 600) // more than are ready at a time
			for i := range records {
				records[i] = waitingFor(int64(i), tt.written, due)
			}
			l.tiers()[0].takePolled([16]byte{}, records, 600)
		}
		o := observed{values: map[string]int64{}}
		rest := named{name: "rest"}
		c.observe(o, &gauges{rest, named{name: "oldest"}, rest, rest, rest, rest, rest, rest, rest, rest, rest, rest, rest, rest, rest, rest})
		if got, there := o.values["oldest"]; got != tt.want || there != (len(tt.due) > 0) {
			t.Errorf("due first at %d, there: %v; want %d, %v", got, there, tt.want, len(tt.due) > 0)
		}
	})
}

// siding.lanes counts lanes, of which one may have many handlers, and none that is gone.
func TestTelemetry_CountsHandlersThatDoNotEnd(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := idle(t, Config{Policy: Policy{HandlerTimeout: time.Minute}}, func() {})
		present, former := held(c, 0, "m"), held(c, 1, "m")
		for _, l := range []*lane{present, present, former, former, former} {
			u := &unit{feed: &l.source.feed}
			a := l.attemptNow()
			a.in.last.Store(int64(time.Since(c.clock.Base)))
			u.current.Store(a.in)
			l.units[u] = struct{}{}
		}
		delete(c.lanes, topicPartition{"orders", 1})
		former.close()
		time.Sleep(time.Hour)
		c.clock.Reading.Store(int64(time.Since(c.clock.Base)))
		o := observed{values: map[string]int64{}}
		rest := named{name: "rest"}
		c.observe(o, &gauges{rest, rest, rest, rest, rest, rest, named{name: "stuck"}, rest, rest, rest, rest, rest, rest, rest, rest, rest})
		if got := o.values["stuck"]; got != 5 {
			t.Errorf("%d handlers are stuck, want 5", got)
		}
	})
}

// The tests with OpenTelemetry's SDK are in examples/telemetry, since the root module does not
// require it.

func instrument(c *Consumer) (err error) {
	c.telemetry, err = newTelemetry(c.values, &c.cfg, c.observe)
	return err
}

// measured is a lane that runs units of n records without Kafka.
func measured(t testing.TB, n int) (run func(), c *Consumer) {
	return measuredIn(context.Background(), t, n)
}

// measuredIn is such a lane, of a consumer whose Run has the given context.
func measuredIn(values context.Context, t testing.TB, n int) (run func(), c *Consumer) {
	c = &Consumer{groups: []string{"billing"}, values: values, membership: session.NewMembership(), clock: &clock.Clock{Base: time.Now()}, workerPool: &workerPool{}}
	c.cfg.Group = "billing"
	c.cfg.Handler = func(context.Context, *kgo.Record) error { return nil }
	l := &lane{c: c, topic: "orders", policy: &Policy{HandlerTimeout: time.Minute}}
	withFeeds(l)
	l.source.tracker = offsets.New(0, -1)
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{Topic: "orders", Offset: int64(i), Value: []byte("v"), Headers: []kgo.RecordHeader{
			{Key: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")},
		}}
	}
	u := &unit{feed: &l.source.feed, recs: recs}
	return func() {
		u.ran = 0
		runUnit(u)
		if u.ran != n {
			t.Fatalf("ran %d records, want %d", u.ran, n)
		}
	}, c
}

// Without an SDK a record costs no allocation.
func TestTelemetry_NoAllocationWithoutAnSDK(t *testing.T) { // not parallel: it counts allocations
	run, c := measured(t, unitRecords)
	without := testing.AllocsPerRun(100, run)
	for name, set := range map[string]func(){
		"the global providers": func() {},
		"noop providers": func() {
			c.cfg.TracerProvider, c.cfg.MeterProvider = tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider()
		},
	} {
		set()
		if err := instrument(c); err != nil {
			t.Fatal(err)
		}
		if with := testing.AllocsPerRun(100, run); with > without {
			t.Errorf("%s: %d records cost %v allocations, without telemetry %v; want no more", name, unitRecords, with, without)
		}
	}
}

// adding is a counter that notes its calls.
type adding struct {
	metricnoop.Int64Counter
	calls int
	sum   int64
}

func (c *adding) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	c.calls++
	c.sum += n
}

// A call of the meter costs more than all else of a record that is handled, so it is not called for
// each. What it has not collected when Run ends is not lost.
func TestTelemetry_HandledRecordsAreOneCallOfTheMeter(t *testing.T) {
	t.Parallel()
	run, c := measured(t, unitRecords)
	c.cfg.Topics = []string{"orders"}
	if err := instrument(c); err != nil {
		t.Fatal(err)
	}
	counter := &adding{}
	c.telemetry.handled = counter
	for range 3 {
		run()
	}
	if counter.calls != 0 {
		t.Errorf("the meter was called %d times before it collected, want not at all", counter.calls)
	}
	c.telemetry.reportHandled()
	run()
	c.telemetry.end()
	if counter.calls != 2 || counter.sum != 4*unitRecords {
		t.Errorf("the meter was called %d times with %d records, want twice with %d", counter.calls, counter.sum, 4*unitRecords)
	}
}

// An SDK that is installed while the consumer runs is found.
func TestTelemetry_FindsALateSDK(t *testing.T) {
	t.Parallel()
	run, c := measured(t, 1)
	there, asked := false, 0
	c.cfg.TracerProvider = &tracers{start: func(ctx context.Context, _ trace.SpanConfig) context.Context {
		var is trace.SpanContext
		if asked++; there {
			is = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(asked)}})
		}
		return trace.ContextWithSpanContext(ctx, is)
	}}
	if err := instrument(c); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		run()
	}
	if asked != 1 {
		t.Errorf("a tracer without spans was asked %d times at once, want once", asked)
	}
	there = true
	c.clock.Reading.Add(int64(askTracer))
	for range 10 {
		run()
	}
	if asked != 11 {
		t.Errorf("a tracer that has spans by now was asked %d times, want once more for each attempt", asked)
	}
}

// tracers is a tracer provider that starts spans by a function. It returns the span's context.
type tracers struct {
	tracenoop.TracerProvider
	start func(context.Context, trace.SpanConfig) context.Context
}

func (p *tracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{of: p} }

type tracer struct {
	tracenoop.Tracer
	of *tracers
}

func (t tracer) Start(ctx context.Context, _ string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx = t.of.start(ctx, trace.NewSpanStartConfig(opts...))
	return ctx, trace.SpanFromContext(ctx)
}

// Without an SDK the API returns the span that the context has already as if it were a new one.
func TestTelemetry_LeavesForeignSpansAlone(t *testing.T) {
	foreign := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	each(t, map[string]trace.TracerProvider{"global": nil, "noop": tracenoop.NewTracerProvider()}, func(t *testing.T, provider trace.TracerProvider) {
		run, c := measuredIn(trace.ContextWithSpanContext(context.Background(), foreign), t, 3)
		c.cfg.TracerProvider = provider
		c.cfg.Handler = func(ctx context.Context, _ *kgo.Record) error {
			if _, ok := ctx.(*attempt); !ok {
				t.Errorf("the handler got a %T, want the attempt itself", ctx)
			}
			if got := trace.SpanContextFromContext(ctx); !got.Equal(foreign) {
				t.Errorf("the handler saw span %v, want the one of Run's context", got.SpanID())
			}
			return nil
		}
		if err := instrument(c); err != nil {
			t.Fatal(err)
		}
		run()
		var g attemptTelemetry
		c.telemetry.askTracerAt.Store(0)
		g.enable(c.telemetry, 0)
		a := attemptOn(&origin{values: c.values}, &kgo.Record{})
		g.start(c.telemetry, a)
		if got := g.traceParent(); got != "" || g.tracing {
			t.Errorf("dlq-traceparent %q, tracing %v; want none", got, g.tracing)
		}
	})
}

// A retry may be hours after its record's first attempt, so an attempt joins no trace.
func TestTelemetry_AttemptSpanIsARoot(t *testing.T) {
	others := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	each(t, map[string]func(*Consumer, *kgo.Record){
		"nothing":                 func(*Consumer, *kgo.Record) {},
		"a span of Run's context": func(c *Consumer, _ *kgo.Record) { c.values = valuesOf(others) },
		"a span of a client hook": func(_ *Consumer, r *kgo.Record) { r.Context = others },
	}, func(t *testing.T, set func(*Consumer, *kgo.Record)) {
		_, c := measured(t, 1)
		var parent trace.SpanContext
		c.cfg.TracerProvider = &tracers{start: func(ctx context.Context, cfg trace.SpanConfig) context.Context {
			if !cfg.NewRoot() {
				parent = trace.SpanContextFromContext(ctx)
			}
			return ctx
		}}
		rec := &kgo.Record{}
		set(c, rec)
		a := attemptOn(&origin{source: "orders", values: c.values}, rec)
		a.in.from.sig = newSignals(a.in.from, "billing")
		if err := instrument(c); err != nil {
			t.Fatal(err)
		}
		var g attemptTelemetry
		g.enable(c.telemetry, 0)
		g.start(c.telemetry, a)
		if parent.IsValid() {
			t.Errorf("the span's parent is %v, want none", parent.SpanID())
		}
	})
}

// An error's text is cut and made valid UTF-8 for spans.
func TestTelemetry_CutsAndMendsErrorTexts(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "fine", "caf\xe9", strings.Repeat("é", headers.MaxMessage), strings.Repeat("\xff", 5000)} {
		got := shown(s)
		if !utf8.ValidString(got) || len(got) > headers.MaxMessage+utf8.UTFMax {
			t.Errorf("shown(%.20q) is %d bytes, valid %v", s, len(got), utf8.ValidString(got))
		}
		if utf8.ValidString(s) && len(s) <= headers.MaxMessage && got != s {
			t.Errorf("shown(%q) = %q, want it unchanged", s, got)
		}
	}
}

// failing is a provider of a meter that refuses its instruments.
type failing struct{ metricnoop.MeterProvider }

func (failing) Meter(string, ...metric.MeterOption) metric.Meter { return failingMeter{} }

type failingMeter struct{ metricnoop.Meter }

var errInstrument = errors.New("no room for instruments")

func (failingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errInstrument
}

// An instrument that the meter refuses ends the start.
func TestTelemetry_MissingInstrumentEndsTheStart(t *testing.T) {
	t.Parallel()
	c := unstarted(t, Config{MeterProvider: failing{}}, func() {})
	if err := c.Run(t.Context()); !errors.Is(err, errInstrument) {
		t.Errorf("Run: %v, want %v", err, errInstrument)
	}
}

// registering is a provider of a meter that counts its callbacks.
type registering struct {
	metricnoop.MeterProvider
	callbacks  *atomic.Int32
	registered chan struct{}
}

func (p registering) Meter(string, ...metric.MeterOption) metric.Meter {
	return registeringMeter{of: p}
}

type registeringMeter struct {
	metricnoop.Meter
	of registering
}

func (m registeringMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	m.of.callbacks.Add(1)
	close(m.of.registered)
	return registration{callbacks: m.of.callbacks}, nil
}

type registration struct {
	metricnoop.Registration
	callbacks *atomic.Int32
}

func (r registration) Unregister() error {
	r.callbacks.Add(-1)
	return nil
}

// A provider outlives the consumer, and would keep it in memory.
func TestTelemetry_MeterForgetsAnEndedConsumer(t *testing.T) {
	t.Parallel()
	callbacks, registered := new(atomic.Int32), make(chan struct{})
	c := unstarted(t, Config{MeterProvider: registering{callbacks: callbacks, registered: registered}}, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-registered
	if got := callbacks.Load(); got != 1 {
		t.Errorf("%d callbacks while it runs, want 1", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := callbacks.Load(); got != 0 {
		t.Errorf("%d callbacks after it ended, want none", got)
	}
}

// The class names that become attributes of metrics are bounded.
func TestTelemetry_ClassNamesAreBounded(t *testing.T) {
	t.Parallel()
	tel := &telemetry{classes: map[string]bool{}}
	for i := range maxClasses {
		if name := fmt.Sprint("c", i); tel.class(name) != name {
			t.Fatalf("class %d counts as %q, want as itself", i, tel.class(name))
		}
	}
	for name, want := range map[string]string{"c0": "c0", "c99": "c99", "new": "other", "": "other"} {
		if got := tel.class(name); got != want {
			t.Errorf("class %q counts as %q, want %q", name, got, want)
		}
	}
}

// wanted is a counter that a reader collects.
type wanted struct{ metricnoop.Int64Counter }

func (wanted) Enabled(context.Context) bool { return true }

// The attributes were made for each failure. Now they are kept, as many as there are names of
// classes.
func TestTelemetry_FailureCostsNoAllocation(t *testing.T) { // not parallel: it counts allocations
	_, c := measured(t, 1)
	if err := instrument(c); err != nil {
		t.Fatal(err)
	}
	tel := c.telemetry
	tel.routed = wanted{}
	l := &lane{c: c, topic: "orders"}
	withFeeds(l)
	g, a := attemptTelemetry{timing: true}, attemptOn(nil, nil)
	for what, measure := range map[string]func(f *feed, class string){
		"the duration": func(f *feed, class string) {
			a.in.from = f.origin
			g.failed(tel, a, outcomeRetried, "busy", classify.Result{Class: class})
		},
		"where it went": func(f *feed, class string) { c.telemetry.countRouted(f.lane.topic, "dlq", class, headers.ReasonPanic) },
	} {
		n := testing.AllocsPerRun(100, func() {
			for f := range l.read() {
				for _, class := range []string{"payment.busy", "payment.declined"} {
					measure(f, class)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s of four failures costs %v allocations, want none", what, n)
		}
	}
	for i := range 10 * maxClasses {
		tel.failed(l.source.origin, outcomeRetried, fmt.Sprint("order ", i))
		tel.route("orders", "dlq", fmt.Sprint("order ", i), headers.ReasonPanic)
	}
	if most := 4 * (maxClasses + 1); len(tel.failures) > most || len(tel.routes) > most {
		t.Errorf("attributes of %d failures and %d ways are kept, want %d at most", len(tel.failures), len(tel.routes), most)
	}
}

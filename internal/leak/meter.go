package leak

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"
)

// MeterProvider returns a provider whose instruments show the finder their names, and the
// attributes of each measurement. [Meters.Collect] observes the asynchronous ones. It is enough for
// what siding measures: of the synchronous instruments, counters of integers and histograms of
// floats.
func (f *Finder) MeterProvider() *Meters { return &Meters{to: f} }

// Meters is a provider of meters for a [Finder].
type Meters struct {
	noop.MeterProvider
	to *Finder

	mu        sync.Mutex
	callbacks map[*metric.Callback]bool
}

// Meter returns a meter.
func (p *Meters) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	c := metric.NewMeterConfig(opts...)
	with := c.InstrumentationAttributes()
	show(p.to, "metric", name, c.InstrumentationVersion(), attributes(with.ToSlice()))
	return meter{of: p}
}

// Collect observes the asynchronous instruments, as an exporter does once in a while.
func (p *Meters) Collect(ctx context.Context) error {
	p.mu.Lock()
	var all []*metric.Callback
	for c := range p.callbacks {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		if err := (*c)(ctx, observer{to: p.to}); err != nil {
			return err
		}
	}
	return nil
}

type meter struct {
	noop.Meter
	of *Meters
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	show(m.of.to, "metric", name)
	return counter{to: m.of.to}, nil
}

func (m meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	show(m.of.to, "metric", name)
	return histogram{to: m.of.to}, nil
}

func (m meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.of.callbacks == nil {
		m.of.callbacks = map[*metric.Callback]bool{}
	}
	m.of.callbacks[&f] = true
	return registration{of: m.of, callback: &f}, nil
}

type registration struct {
	embedded.Registration
	of       *Meters
	callback *metric.Callback
}

func (r registration) Unregister() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	delete(r.of.callbacks, r.callback)
	return nil
}

type counter struct {
	noop.Int64Counter
	to *Finder
}

func (counter) Enabled(context.Context) bool { return true }

func (c counter) Add(_ context.Context, _ int64, opts ...metric.AddOption) {
	measured(c.to, metric.NewAddConfig(opts).Attributes())
}

type histogram struct {
	noop.Float64Histogram
	to *Finder
}

func (histogram) Enabled(context.Context) bool { return true }

func (h histogram) Record(_ context.Context, _ float64, opts ...metric.RecordOption) {
	measured(h.to, metric.NewRecordConfig(opts).Attributes())
}

type observer struct {
	noop.Observer
	to *Finder
}

func (o observer) ObserveInt64(_ metric.Int64Observable, _ int64, opts ...metric.ObserveOption) {
	measured(o.to, metric.NewObserveConfig(opts).Attributes())
}

func (o observer) ObserveFloat64(_ metric.Float64Observable, _ float64, opts ...metric.ObserveOption) {
	measured(o.to, metric.NewObserveConfig(opts).Attributes())
}

func measured(to *Finder, with attribute.Set) { show(to, "metric", attributes(with.ToSlice())) }

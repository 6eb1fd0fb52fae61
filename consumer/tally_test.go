package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

// counting is a provider of histograms that count what is recorded, by the contexts.
type counting struct {
	metricnoop.MeterProvider
	mu   sync.Mutex
	seen map[int64]int // by offset
}

func (p *counting) Meter(string, ...metric.MeterOption) metric.Meter { return countingMeter{of: p} }

type countingMeter struct {
	metricnoop.Meter
	of *counting
}

func (m countingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return countingHistogram{of: m.of}, nil
}

type countingHistogram struct {
	metricnoop.Float64Histogram
	of *counting
}

func (countingHistogram) Enabled(context.Context) bool { return true }

func (h countingHistogram) Record(ctx context.Context, _ float64, _ ...metric.RecordOption) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.seen[attemptOf(ctx).off]++
}

func (p *counting) recorded() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

func TestEveryHandledRunIsRecordedOnce(t *testing.T) {
	t.Parallel()
	run, c := measured(t, unitRecords)
	meters := &counting{seen: map[int64]int{}}
	c.cfg.MeterProvider = meters
	var f *feed
	c.cfg.Handler = func(ctx context.Context, _ *kgo.Record) error {
		if f == nil {
			f = attemptOf(ctx).from
		}
		return nil
	}
	if err := c.instrument(); err != nil {
		t.Fatal(err)
	}
	run() // the feed has its tally
	var over atomic.Bool
	var watchdog sync.WaitGroup
	watchdog.Go(func() {
		for !over.Load() {
			f.recordKept()
		}
	})
	const units = 100
	for range units {
		run()
	}
	over.Store(true)
	watchdog.Wait()
	for off := range int64(unitRecords) {
		if got := meters.seen[off]; got != units+1 {
			t.Fatalf("the runs of offset %d were recorded %d times, want %d", off, got, units+1)
		}
	}
}

func TestWhatWasHandledBeforeASlowRunIsRecordedByTheWatchdog(t *testing.T) {
	t.Parallel()
	run, c := measured(t, 4)
	meters := &counting{seen: map[int64]int{}}
	c.cfg.MeterProvider = meters
	c.cfg.Handler = func(ctx context.Context, _ *kgo.Record) error {
		if a := attemptOf(ctx); a.off == 3 {
			if got := meters.recorded(); got != 0 {
				t.Errorf("%d runs recorded one by one, want them together", got)
			}
			a.from.recordKept()
			if got := meters.recorded(); got != 3 {
				t.Errorf("%d runs recorded while the next one goes on, want the 3 before it", got)
			}
		}
		return nil
	}
	if err := c.instrument(); err != nil {
		t.Fatal(err)
	}
	run()
	if got := meters.recorded(); got != 4 {
		t.Errorf("%d runs recorded at the end of the unit, want 4", got)
	}
}

func TestAUnitThatEndsEarlyLeavesNoRunUnrecorded(t *testing.T) {
	t.Parallel()
	c := &Consumer{values: valuesOf(t.Context()), clock: &clock{}, slots: &slots{}}
	meters := &counting{seen: map[int64]int{}}
	c.cfg.MeterProvider = meters
	l := &lane{c: c, topic: "orders", policy: &Policy{}}
	f := &feed{lane: l, topic: "orders", tracker: newTracker(0, -1)}
	f.sig = f.signals("billing")
	l.feeds = []*feed{f}
	c.cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		l.hold.Store(r.Offset == 1)
		return nil
	}
	if err := c.instrument(); err != nil {
		t.Fatal(err)
	}
	u := &unit{feed: f, recs: []*kgo.Record{{}, {Offset: 1}, {Offset: 2}}}
	c.runUnit(u)
	if got := meters.recorded(); u.ran != 2 || got != 2 {
		t.Errorf("%d runs, %d recorded; want 2 of both", u.ran, got)
	}
}

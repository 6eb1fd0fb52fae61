package consumer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/sidingkafka/siding/consumer"
)

// lines is a log that a test can read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) with(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		n++
	}
	return n
}

// has checks how many lines have all of the parts.
func (l *lines) has(t *testing.T, want int, parts ...string) {
	t.Helper()
	if n := l.with(parts...); n != want {
		t.Errorf("%d lines of the log have %q, want %d", n, parts, want)
	}
}

// logged has a consumer log to lines.
func logged(cfg *consumer.Config) *lines {
	log := &lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	return log
}

// metered has a consumer log to lines, and count the expired records of a topic.
func metered(cfg *consumer.Config, topic string) (*lines, *expiredMeter) {
	m := &expiredMeter{topic: topic}
	cfg.MeterProvider = m
	return logged(cfg), m
}

// expiredMeter sums up siding.expired.records of a topic.
type expiredMeter struct {
	noop.MeterProvider
	topic string
	n     atomic.Int64
}

func (m *expiredMeter) Meter(string, ...metric.MeterOption) metric.Meter { return meter{of: m} }

type meter struct {
	noop.Meter
	of *expiredMeter
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{of: m.of, name: name}, nil
}

type counter struct {
	noop.Int64Counter
	of   *expiredMeter
	name string
}

func (c counter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	set := metric.NewAddConfig(opts).Attributes()
	if topic, _ := set.Value(attribute.Key("messaging.destination.name")); c.name == "siding.expired.records" && topic.AsString() == c.of.topic {
		c.of.n.Add(n)
	}
}

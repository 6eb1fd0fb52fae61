package consumer

// The attributes of spans and measurements; telemetry_instruments.go declares the instruments.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Instrumentation follows OpenTelemetry's semantic conventions for messaging and Kafka, version
// 1.43 (status: development). The next version renames some keys.
const scope = modulePath + "/consumer"

// The outcomes of a delivery.
const (
	outcomeHandled      = "handled"
	outcomeRetried      = "retried"
	outcomeDeadLettered = "dead_lettered"
	outcomeDiscarded    = "discarded"
	outcomeStopped      = "stopped"
	outcomeDrained      = "drained" // on spans only: it is no attempt
	outcomeProbed       = "probed"  // a failed probe of a topic that is held: it is no attempt
)

const (
	keyTier    = attribute.Key("siding.tier")
	keyOutcome = attribute.Key("siding.outcome")
	keyTo      = attribute.Key("siding.to")
	keyReason  = attribute.Key("siding.reason")
	keyState   = attribute.Key("siding.lane.state")
	keyMember  = attribute.Key("siding.member.state")
	keyGuard   = attribute.Key("siding.guard.state")
)

// maxClasses bounds the class names that a consumer uses as metric attributes. A class name that
// contains a record's id would otherwise make a time series per record.
const maxClasses = 100

// telemetry holds the consumer's tracer and instruments; nil before Run.
type telemetry struct {
	tracer   trace.Tracer
	spanned  bool      // the context of Run has a span
	base     time.Time // durations are differences of times since base
	duration metric.Float64Histogram
	lateness metric.Float64Histogram
	routed   metric.Int64Counter
	expired  metric.Int64Counter
	omitted  metric.Int64Counter
	group    string
	observed metric.Registration
	// The coarse reading before which the tracer is not asked for a span again: it gave none.
	askTracerAt atomic.Int64

	mu       sync.Mutex
	classes  map[string]bool
	failures map[failure][]metric.RecordOption
	routes   map[routing][]metric.AddOption
}

// failure and routing are the keys of the attribute sets of failed records. Each set is made once.
// There are few of them, since class names are bounded.
type (
	failure struct {
		topic          string
		delay          time.Duration // of the tier
		outcome, class string
	}
	routing struct {
		topic, to, class string
		reason           headers.Reason
	}
)

// class returns the class name for an attribute: name, or "other" beyond maxClasses names.
func (t *telemetry) class(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.classes[name] {
		return name
	}
	if len(t.classes) >= maxClasses {
		return "other"
	}
	t.classes[name] = true
	return name
}

// failed returns the attributes of a failed run's duration.
func (t *telemetry) failed(from *origin, outcome, class string) []metric.RecordOption {
	is := failure{from.source, from.delay, outcome, t.class(class)}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.failures[is]
	if !ok {
		with = from.sig.with(keyOutcome.String(outcome), semconv.ErrorTypeKey.String(is.class))
		t.failures[is] = with
	}
	return with
}

// route returns the attributes of a failed record's routing.
func (t *telemetry) route(topic, to, class string, reason headers.Reason) []metric.AddOption {
	is := routing{topic, to, t.class(class), reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.routes[is]
	if !ok {
		with = []metric.AddOption{metric.WithAttributes(semconv.MessagingDestinationName(topic), semconv.MessagingConsumerGroupName(t.group),
			keyTo.String(to), semconv.ErrorTypeKey.String(is.class), keyReason.String(string(reason)))}
		t.routes[is] = with
	}
	return with
}

// countRouted counts a failed record by its destination.
func (t *telemetry) countRouted(topic, to, class string, reason headers.Reason) {
	if t == nil || !t.routed.Enabled(context.Background()) {
		return
	}
	t.routed.Add(context.Background(), 1, t.route(topic, to, class, reason)...)
}

// countParked counts a failed record that goes to a tier.
func (t *telemetry) countParked(topic string, tier time.Duration, class string) {
	// Checked here too, to save formatting the delay.
	if t != nil && t.routed.Enabled(context.Background()) {
		t.countRouted(topic, retrytopics.FormatDelay(tier), class, "")
	}
}

// countExpired counts offsets that retention deleted before they were read.
func (t *telemetry) countExpired(topic string, n int64) {
	if t != nil {
		t.expired.Add(context.Background(), n, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(t.group)))
	}
}

// countOmitted counts a dead letter that was written without its value.
func (t *telemetry) countOmitted(topic string) {
	if t != nil {
		t.omitted.Add(context.Background(), 1, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(t.group)))
	}
}

package serve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sidingkafka/siding/redrive"
)

const scope = "github.com/sidingkafka/siding/serve"

// otherClasses stands for the classes of a topic beyond Config.MaxClasses. OpenTelemetry's
// conventions keep _OTHER for such.
const otherClasses = "_OTHER"

// instruments are observed when a meter collects. Each server observes the topics that it owns, so
// the values of several servers add up.
type instruments struct {
	open, written, oldest, fresh, expiring, outcomes, runs, unread, recent, thresholds metric.Int64Observable
}

// observe registers the server's instruments with a meter provider.
func (s *Server) observe(meters metric.MeterProvider) (metric.Registration, error) {
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var in instruments
	var errs [10]error
	in.open, errs[0] = meter.Int64ObservableUpDownCounter("siding.dead_letters.open", metric.WithUnit("{record}"),
		metric.WithDescription("Open dead letters by class."))
	in.written, errs[1] = meter.Int64ObservableCounter("siding.dead_letters.written", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that were written, by class, resolved ones included."))
	in.oldest, errs[2] = meter.Int64ObservableGauge("siding.dead_letters.oldest_open", metric.WithUnit("s"),
		metric.WithDescription("When the oldest open dead letter was written, in Unix seconds."))
	in.fresh, errs[3] = meter.Int64ObservableUpDownCounter("siding.dead_letters.new_classes", metric.WithUnit("{class}"),
		metric.WithDescription("Classes whose first dead letter came within the last day."))
	in.expiring, errs[4] = meter.Int64ObservableUpDownCounter("siding.dead_letters.expiring", metric.WithUnit("{record}"),
		metric.WithDescription("Open dead letters that retention takes within a time."))
	in.outcomes, errs[5] = meter.Int64ObservableUpDownCounter("siding.dead_letters.resolved", metric.WithUnit("{record}"),
		metric.WithDescription("Resolved dead letters that are still in their topic, by state."))
	in.runs, errs[6] = meter.Int64ObservableUpDownCounter("siding.redrive.runs", metric.WithUnit("{run}"),
		metric.WithDescription("Redrive runs by state."))
	in.unread, errs[7] = meter.Int64ObservableUpDownCounter("siding.dead_letters.unread", metric.WithUnit("{record}"),
		metric.WithDescription("Offsets of dead-letter topics that the server has still to read; its other metrics lack these."))
	in.recent, errs[8] = meter.Int64ObservableUpDownCounter("siding.dead_letters.recent", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that came within the last five minutes."))
	in.thresholds, errs[9] = meter.Int64ObservableGauge("siding.dead_letters.threshold", metric.WithUnit("{limit}"),
		metric.WithDescription("Limits of alerts, as the configuration sets them for the topic: numbers of letters, and seconds."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := time.Now()
		for _, t := range s.owned() {
			s.report(o, &in, t, now)
		}
		return nil
	}, in.open, in.written, in.oldest, in.fresh, in.expiring, in.outcomes, in.runs, in.unread, in.recent, in.thresholds)
}

// report observes a topic.
func (s *Server) report(o metric.Observer, in *instruments, t *topic, now time.Time) {
	name := semconv.MessagingDestinationName(t.DeadLetterTopic.Topic)
	progress := t.book.Progress()
	o.ObserveInt64(in.unread, progress.Unread, metric.WithAttributes(name))
	if progress.Complete.IsZero() {
		return // what nobody knows is not 0
	}
	f := t.figures(now)
	most := s.cfg.MaxClasses
	byClass := func(i metric.Int64Observable, counts map[string]int64) {
		for class, n := range bounded(counts, f.writtenBy, most) {
			o.ObserveInt64(i, n, metric.WithAttributes(name, semconv.ErrorTypeKey.String(class)))
		}
	}
	byClass(in.open, f.openBy)
	byClass(in.written, f.writtenBy)
	if !f.oldest.IsZero() {
		o.ObserveInt64(in.oldest, f.oldest.Unix(), metric.WithAttributes(name))
	}
	o.ObserveInt64(in.fresh, int64(len(f.newClasses)), metric.WithAttributes(name))
	o.ObserveInt64(in.recent, f.recent, metric.WithAttributes(name))
	is := t.config.thresholds()
	for _, limit := range []struct {
		name string
		is   int64
	}{
		{"warn_open", is.WarnOpen}, {"page_open", is.PageOpen}, {"new", is.New}, {"oldest", int64(is.Oldest / time.Second)},
	} {
		if limit.is > 0 {
			o.ObserveInt64(in.thresholds, limit.is, metric.WithAttributes(name, attribute.String("siding.threshold", limit.name)))
		}
	}
	for i, n := range f.expiring {
		o.ObserveInt64(in.expiring, n, metric.WithAttributes(name, attribute.String("siding.within", hours(expiryHours[i]))))
	}
	for state, n := range f.outcomes {
		o.ObserveInt64(in.outcomes, n, metric.WithAttributes(name, attribute.String("siding.letter.state", string(state))))
	}
	for _, state := range []redrive.State{redrive.Canary, redrive.Sending, redrive.Waiting, redrive.Watching, redrive.Done, redrive.Aborted} {
		o.ObserveInt64(in.runs, f.runs[state], metric.WithAttributes(name, attribute.String("siding.run.state", string(state))))
	}
}

// bounded returns counts with at most most classes: those with the most letters by weight. The
// others are one.
func bounded(counts, weight map[string]int64, most int) map[string]int64 {
	classes := slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	all := map[string]int64{}
	for i, class := range classes {
		name := class
		if i >= most {
			name = otherClasses
		}
		all[name] += counts[class]
	}
	return all
}

// hours returns a time in hours, as in 48h.
func hours(d time.Duration) string { return strconv.Itoa(int(d/time.Hour)) + "h" }

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

	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

const scope = "github.com/sidingkafka/siding/serve"

// instruments are observed when a meter collects. Each server observes the topics that it owns, so
// the values of several servers add up.
type instruments struct {
	open, recent, expiring, resolved, fresh, unread, runs, rules, held metric.Int64ObservableUpDownCounter
	written, outcomes                                                  metric.Int64ObservableCounter
	oldest, first, expiry, thresholds                                  metric.Int64ObservableGauge
	success                                                            metric.Float64ObservableGauge
	groups                                                             groupInstruments
}

// observe registers the server's instruments with a meter provider.
func (s *Server) observe(meters metric.MeterProvider) (metric.Registration, error) {
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var in instruments
	var all []metric.Observable
	var errs []error
	sum := func(i *metric.Int64ObservableUpDownCounter, name, unit, description string) {
		var err error
		*i, err = meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, *i), append(errs, err)
	}
	counter := func(i *metric.Int64ObservableCounter, name, unit, description string) {
		var err error
		*i, err = meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, *i), append(errs, err)
	}
	gauge := func(i *metric.Int64ObservableGauge, name, unit, description string) {
		var err error
		*i, err = meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, *i), append(errs, err)
	}
	sum(&in.open, "siding.dead_letters.open", "{record}", "Open dead letters by class.")
	sum(&in.recent, "siding.dead_letters.recent", "{record}", "Dead letters that came within the last five minutes, by class.")
	counter(&in.written, "siding.dead_letters.written", "{record}", "Dead letters that came since the server knows the topic, by class.")
	gauge(&in.first, "siding.dead_letters.first_written", "s", "When the first dead letter of a class was written, in Unix seconds.")
	sum(&in.fresh, "siding.dead_letters.new_classes", "{class}", "Classes that are new: never seen before.")
	gauge(&in.oldest, "siding.dead_letters.oldest_open", "s", "When the oldest open dead letter was written, in Unix seconds.")
	gauge(&in.expiry, "siding.dead_letters.next_expiry", "s", "When retention takes the oldest open dead letter, in Unix seconds.")
	sum(&in.expiring, "siding.dead_letters.expiring", "{record}", "Open dead letters that retention takes within a time.")
	sum(&in.resolved, "siding.dead_letters.resolved", "{record}", "Resolved dead letters that are still in their topic, by state.")
	gauge(&in.thresholds, "siding.dead_letters.threshold", "{limit}", "Limits of alerts, as the configuration sets them for the topic: numbers of letters, and seconds.")
	sum(&in.unread, "siding.dead_letters.unread", "{record}", "Offsets of dead-letter topics that the server has still to read; its other metrics lack these.")
	counter(&in.outcomes, "siding.redrive.outcomes", "{record}", "Redriven dead letters by outcome, since the server knows the topic.")
	sum(&in.runs, "siding.redrive.runs", "{run}", "Redrive runs by state.")
	sum(&in.rules, "siding.redrive.rules", "{rule}", "Rules that redrive, by the state of their circuit, or paused.")
	sum(&in.held, "siding.dead_letters.held", "{record}", "Dead letters beyond the limits of retention that stay: they are open, or stand behind a letter that stays.")
	in.groups.register(sum)
	var err error
	in.success, err = meter.Float64ObservableGauge("siding.redrive.success", metric.WithUnit("1"),
		metric.WithDescription("Share of the letters of the last run that succeeded, of those that succeeded or failed again, or that an aborted run was to send."))
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now, rules := time.Now(), s.desk.RuleList()
		for _, t := range s.cluster.Owned() {
			s.report(o, &in, t, now, rules)
		}
		return nil
	}, append(all, in.success)...)
}

// report observes a topic.
func (s *Server) report(o metric.Observer, in *instruments, t *watch.Topic, now time.Time, rules []rule.Rule) {
	name := semconv.MessagingDestinationName(t.DeadLetterTopic.Topic)
	at := func(more ...attribute.KeyValue) metric.ObserveOption {
		return metric.WithAttributes(append(more, name)...)
	}
	reportGroups(s.cluster, o, &in.groups, t, at)
	progress := t.Index.Progress()
	o.ObserveInt64(in.unread, progress.Unread, at())
	if progress.Read.IsZero() {
		return // what is unknown is not 0
	}
	f := watch.FiguresOf(t, now, rules)
	s.reportClasses(o, in, t, &f, at)
	moment := func(i metric.Int64Observable, when time.Time) {
		if !when.IsZero() {
			o.ObserveInt64(i, when.Unix(), at())
		}
	}
	moment(in.oldest, f.Oldest)
	moment(in.expiry, f.NextExpiry)
	o.ObserveInt64(in.fresh, int64(len(f.NewClasses)), at())
	if n, known := s.retainer.Held(t); known {
		o.ObserveInt64(in.held, n, at())
	}
	is := t.Settings.Thresholds
	for _, limit := range []struct {
		name string
		is   int64
	}{
		{"warn_open", is.WarnOpen},
		{"page_open", is.PageOpen},
		{"new", is.New},
		{"oldest", int64(is.Oldest / time.Second)},
		{"new_class", int64(is.NewClass / time.Second)},
		{"retention", int64(is.Retention / time.Second)},
	} {
		if limit.is > 0 {
			o.ObserveInt64(in.thresholds, limit.is, at(thresholdKey.String(limit.name)))
		}
	}
	for i, n := range f.Expiring {
		o.ObserveInt64(in.expiring, n, at(withinKey.String(hours(watch.ExpiryHours[i]))))
	}
	for _, state := range resolvedStates {
		o.ObserveInt64(in.resolved, f.Resolved[state], at(stateKey.String(string(state))))
	}
	for _, state := range letterindex.Outcomes {
		o.ObserveInt64(in.outcomes, f.Flow.Outcomes[state], at(stateKey.String(string(state))))
	}
	if share, _, known := f.Success(); known {
		o.ObserveFloat64(in.success, share, at())
	}
	for _, state := range runStates {
		o.ObserveInt64(in.runs, f.Runs[state], at(runStateKey.String(string(state))))
	}
	for i := range f.Circuits {
		for _, state := range watch.CircuitStates {
			var n int64
			if f.Circuits[i].Name() == state {
				n = 1
			}
			o.ObserveInt64(in.rules, n, at(ruleKey.String(f.Circuits[i].Rule), ruleStateKey.String(state)))
		}
	}
}

// reportClasses observes what a topic counts by class: MaxClasses of them, and the others as one.
func (s *Server) reportClasses(o metric.Observer, in *instruments, t *watch.Topic, f *watch.Figures, at func(...attribute.KeyValue) metric.ObserveOption) {
	type numbers struct {
		open, recent, written, first int64
		gone                         bool // the topic has no letter of them any more
	}
	labels := map[string]numbers{}
	classes := slices.SortedFunc(maps.Keys(f.WrittenBy), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.WrittenBy[b], f.WrittenBy[a]), cmp.Compare(a, b))
	})
	for _, class := range classes {
		label := t.Classes.Label(class, s.cfg.MaxClasses)
		is := labels[label]
		is.open += f.OpenBy[class]
		is.recent += f.RecentBy[class]
		is.first = max(is.first, f.FirstBy[class].Unix()) // of several, the one that came last
		labels[label] = is
	}
	for class, n := range f.Flow.Written {
		label := t.Classes.Label(class, s.cfg.MaxClasses)
		is, ok := labels[label]
		is.gone = is.gone || !ok
		is.written += n
		labels[label] = is
	}
	for label, is := range labels {
		class := at(semconv.ErrorTypeKey.String(label))
		o.ObserveInt64(in.written, is.written, class)
		if !is.gone {
			o.ObserveInt64(in.open, is.open, class)
			o.ObserveInt64(in.recent, is.recent, class)
			o.ObserveInt64(in.first, is.first, class)
		}
	}
}

// hours returns a time in hours, as in 48h.
func hours(d time.Duration) string { return strconv.Itoa(int(d/time.Hour)) + "h" }

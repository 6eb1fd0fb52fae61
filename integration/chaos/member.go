package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

// runMember consumes until SIGTERM.
func runMember(cfg Config, j trace.Job) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := os.OpenFile(j.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	journal, err := trace.OpenJournal(j.Journal())
	if err != nil {
		return err
	}
	go journal.Sync(context.Background())
	go watchVitals(journal)
	go watchLateness(journal)
	down := new(outage.State)
	go down.Watch(trace.OutageFile(j.Dir, j.Service.Group))
	reader := sdkmetric.NewManualReader()
	finder := leak.Of(j.Mark)
	go watchLeaks(finder, j.Leaks())
	p := j.Service.Policy
	kafka := []kgo.Opt{
		kgo.SessionTimeout(p.Session), kgo.HeartbeatInterval(trace.Session / 12), kgo.RebalanceTimeout(trace.RebalanceTimeout),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.ClientID(j.Name),
	}
	if j.Skew != 0 {
		kafka = append(kafka, kgo.WithHooks(skewed(j.Skew)))
	}
	if j.Service.NextGen {
		kafka = append(kafka, kgo.ServerSideBalancer())
	}
	if len(j.Seeds) > 0 {
		kafka = append(kafka, kgo.SeedBrokers(j.Seeds...))
		if j.User != "" {
			kafka = append(kafka, brokers.Login(j.User))
		}
	} else {
		kafka = append(kafka, cfg.Kafka...)
	}
	config := consumer.Config{
		Group: j.Service.Group, Topics: j.Service.Topics, Kafka: kafka,
		Order: j.Service.Order, Handler: scripted(cfg.Handler, journal, p.HandlerTimeout, down),
		Hooks: []consumer.Hook{breakerHook{journal}},
		Policy: consumer.Policy{
			Tiers: p.Tiers, MaxAttempts: p.MaxAttempts, HandlerTimeout: p.HandlerTimeout,
			Immediate: consumer.Immediate{Attempts: p.InPlace},
			// Once the load has ended, what is left are retries, many of which fail again. With the
			// budget of one a second they would run for hours.
			RetryBudget: consumer.RetryBudget{Off: true},
			// Nor have a member's topics that had no source record since an outage.
			Breaker: consumer.Breaker{MaxOutage: 3 * time.Minute},
		},
		Concurrency: j.Service.Concurrency, MaxInFlight: j.Service.MaxInFlight, MaxParkedBytes: j.Service.MaxParkedBytes,
		CommitInterval: p.CommitInterval, DrainTimeout: p.DrainTimeout,
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Logger:        slog.New(slog.NewTextHandler(log, nil)),
	}
	if j.Traced {
		config.TracerProvider = finder.TracerProvider()
		config.Logger = slog.New(slog.NewMultiHandler(slog.NewTextHandler(log, nil), finder.Handler()))
	}
	if cfg.Consumer != nil {
		cfg.Consumer(&config)
	}
	if inject := memberDefects[j.Defect]; inject != nil {
		inject(&config)
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	config.Logger = slog.New(slog.NewMultiHandler(config.Logger.Handler(), trace.NewLaneLog(journal)))
	c, err := consumer.New(config)
	if err != nil {
		return err
	}
	err = c.Run(ctx)
	var stuck *consumer.StuckError
	if errors.As(err, &stuck) {
		err = nil // scripts ignore their contexts
	}
	return errors.Join(err, writeMetrics(reader, finder, j.Metrics()), writeLeaks(finder, j.Leaks()))
}

// breakerHook tells the journal of the breaker.
type breakerHook struct{ journal *trace.Journal }

// OnBreaker is called by the consumer.
func (h breakerHook) OnBreaker(c consumer.BreakerChange) {
	if err := h.journal.Breaker(c.At, c.To); err != nil {
		trace.Fatal(err)
	}
}

// scripted is the handler of all members: it plays the record's script and tells the journal. While
// what it calls is down, it fails instead.
func scripted(own consumer.Handler, j *trace.Journal, timeout time.Duration, down *outage.State) consumer.Handler {
	start := func(ctx context.Context, r *kgo.Record, s trace.Script) int64 {
		d := consumer.DeliveryOf(ctx, r)
		due := int64(0)
		if !d.NotBefore.IsZero() {
			due = d.NotBefore.UnixMilli()
		}
		n, err := j.Start(trace.Run{
			ID: s.ID, Topic: d.Physical.Topic, Partition: d.Physical.Partition, Offset: d.Physical.Offset,
			Attempt: d.Attempt, Due: due,
		})
		if err != nil {
			trace.Fatal(err)
		}
		return n
	}
	decode := func(ctx context.Context, r *kgo.Record) (trace.Script, error) {
		s, ok := trace.ParseScript(r.Headers)
		if !ok {
			return s, classify.Terminal(errors.New("a record of somebody else"))
		}
		if s.Act == trace.ActDecode && s.KillsAt(consumer.DeliveryOf(ctx, r).Attempt) {
			start(ctx, r, s)
			die()
		}
		return s, nil
	}
	play := func(ctx context.Context, r *kgo.Record, s trace.Script) error {
		n := start(ctx, r, s)
		failed, handle := false, own // the team's handler
		if own != nil {
			handle = func(ctx context.Context, r *kgo.Record) error {
				failed = true // unless it returns otherwise
				err := own(ctx, r)
				failed = err != nil
				return err
			}
		}
		defer func() {
			if v := recover(); v != nil {
				if err := j.End(n, trace.VerdictPanic, failed); err != nil {
					trace.Fatal(err)
				}
				panic(v)
			}
		}()
		var result error
		switch mode := down.Fails(r.Key); {
		case mode == outage.None || s.Kills():
			result = play(ctx, s, r, handle, timeout)
		case mode == outage.All:
			result = classify.As(classify.Retryable(errDown), trace.ClassOutage)
		default:
			result = classify.As(classify.Retryable(errPart), trace.ClassOutage)
		}
		if err := j.End(n, verdictOf(ctx, result), failed); err != nil {
			trace.Fatal(err)
		}
		return result
	}
	return func(ctx context.Context, r *kgo.Record) error {
		played := false
		err := consumer.Decode(decode, func(ctx context.Context, r *kgo.Record, s trace.Script) error {
			played = true
			return play(ctx, r, s)
		})(ctx, r)
		// The time was over before the handler began, for example in a process that was suspended.
		if s, ok := trace.ParseScript(r.Headers); ok && !played && err != nil {
			if err := j.End(start(ctx, r, s), verdictOf(ctx, err), false); err != nil {
				trace.Fatal(err)
			}
		}
		return err
	}
}

// errDown is the failure of all runs in an outage, and errPart that of some in a partial one.
var (
	errDown = errors.New("what the handler calls is down")
	errPart = errors.New("what the handler calls is down in part")
)

// verdictOf says how a run ended that returned err.
func verdictOf(ctx context.Context, err error) trace.Verdict {
	if err == nil {
		return trace.VerdictPassed
	}
	if errors.Is(context.Cause(ctx), consumer.ErrDraining) {
		return trace.VerdictDrained
	}
	if errors.Is(err, errDown) {
		return trace.VerdictOutage
	}
	if errors.Is(err, errPart) {
		return trace.VerdictPart
	}
	var c classify.Classifier
	switch c.Classify(err).Verdict {
	case classify.VerdictRetry:
		return trace.VerdictFailed
	case classify.VerdictDiscard:
		return trace.VerdictDiscard
	}
	return trace.VerdictTerminal
}

// writeMetrics writes what the metrics say to a file, and shows them to the finder.
func writeMetrics(reader *sdkmetric.ManualReader, finder *leak.Finder, name string) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	finder.Show("metric", string(text))
	m := trace.Measured{}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			switch points := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range points.DataPoints {
					to, _ := p.Attributes.Value("siding.to")
					m[strings.TrimSuffix(metric.Name+" "+to.AsString(), " ")] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					outcome, _ := p.Attributes.Value("siding.outcome")
					m[strings.TrimSuffix(metric.Name+" "+outcome.AsString(), " ")] += int64(p.Count)
				}
			}
		}
	}
	if text, err = json.Marshal(m); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

package member

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

// Role is the role of a member's process.
const Role = "member"

// Settings are what cannot be handed to a process.
type Settings struct {
	Handler consumer.Handler // the team's, or nil
	Kafka   []kgo.Opt        // if the job names no seeds
	Change  func(*consumer.Config)
}

// Run consumes until SIGTERM.
func Run(with Settings, j trace.Job) error {
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
	config := configOf(j, with.Kafka)
	config.Handler = scripted(with.Handler, journal, j.Service.Policy.HandlerTimeout, down)
	config.Hooks = []consumer.Hook{breakerHook{journal}}
	config.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	if j.Traced {
		config.TracerProvider = finder.TracerProvider()
		config.Logger = slog.New(slog.NewMultiHandler(slog.NewTextHandler(log, nil), finder.Handler()))
	}
	with.Change(&config)
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

// configOf is the configuration that the job names. The options are those of the brokers, if the
// job does not name these.
func configOf(j trace.Job, own []kgo.Opt) consumer.Config {
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
		kafka = append(kafka, own...)
	}
	return consumer.Config{
		Group: j.Service.Group, Topics: j.Service.Topics, Kafka: kafka, Order: j.Service.Order,
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
	}
}

// breakerHook writes to the journal what the breaker does.
type breakerHook struct{ journal *trace.Journal }

// OnBreaker is called by the consumer.
func (h breakerHook) OnBreaker(c consumer.BreakerChange) {
	if err := h.journal.Breaker(c.At, c.To); err != nil {
		trace.Fatal(err)
	}
}

// skewed moves the due times of records that a client reads.
type skewed time.Duration

// OnFetchRecordBuffered is called by the client.
func (s skewed) OnFetchRecordBuffered(r *kgo.Record) {
	for i, h := range r.Headers {
		if h.Key != headers.NotBefore {
			continue
		}
		if due, err := strconv.ParseInt(string(h.Value), 10, 64); err == nil && due > 0 {
			r.Headers[i].Value = strconv.AppendInt(nil, due-time.Duration(s).Milliseconds(), 10)
		}
	}
}

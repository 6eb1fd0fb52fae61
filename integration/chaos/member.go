package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// service is a group of consumers with topics of its own.
type service struct {
	Group      string
	Topics     []string
	Partitions int
	Order      consumer.Order
	NextGen    bool // the KIP-848 protocol
	Policy     policy
	Members    int // at first
	// Concurrency, MaxInFlight and MaxParkedBytes are those of the configuration.
	Concurrency, MaxInFlight int
	MaxParkedBytes           int64
}

// policy is what the checker has to know of a consumer's policy. Tiers may change from member to
// member, by a rolling change of the configuration.
type policy struct {
	Tiers          []time.Duration
	MaxAttempts    int
	HandlerTimeout time.Duration
	InPlace        int
	CommitInterval time.Duration
	DrainTimeout   time.Duration
	Session        time.Duration
}

func (s service) siblings(topic string, tiers []time.Duration) retrytopics.Siblings {
	named, _ := retrytopics.Naming{}.Siblings(topic, s.Group, tiers...) // names without a fault
	return named
}

// memberJob is what a member's process has to do.
type memberJob struct {
	Name    string
	Service service
	Seeds   []string
	Dir     string
	Defect  string
	// Skew is by how much the clock of the member's host is fast. What it reads is moved instead of
	// the clock.
	Skew time.Duration
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

func (j memberJob) journal() string { return j.Dir + "/" + j.Name + ".journal" }
func (j memberJob) metrics() string { return j.Dir + "/" + j.Name + ".metrics.json" }
func (j memberJob) log() string     { return j.Dir + "/" + j.Name + ".log" }

// runMember consumes until SIGTERM.
func runMember(cfg Config, j memberJob) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := os.OpenFile(j.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	journal, err := openJournal(j.journal())
	if err != nil {
		return err
	}
	go journal.sync(context.Background())
	reader := sdkmetric.NewManualReader()
	p := j.Service.Policy
	kafka := []kgo.Opt{
		kgo.SessionTimeout(p.Session), kgo.HeartbeatInterval(p.Session / 12), kgo.RebalanceTimeout(p.DrainTimeout + 10*time.Second),
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
	} else {
		kafka = append(kafka, cfg.Kafka...)
	}
	config := consumer.Config{
		Group: j.Service.Group, Topics: j.Service.Topics, Kafka: kafka,
		Order: j.Service.Order, Handler: scripted(cfg.Handler, journal, p.HandlerTimeout),
		Policy: consumer.Policy{
			Tiers: p.Tiers, MaxAttempts: p.MaxAttempts, HandlerTimeout: p.HandlerTimeout,
			Immediate: consumer.Immediate{Attempts: p.InPlace},
		},
		Concurrency: j.Service.Concurrency, MaxInFlight: j.Service.MaxInFlight, MaxParkedBytes: j.Service.MaxParkedBytes,
		CommitInterval: p.CommitInterval, DrainTimeout: p.DrainTimeout,
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Logger:        slog.New(slog.NewTextHandler(log, nil)),
	}
	if cfg.Consumer != nil {
		cfg.Consumer(&config)
	}
	if inject := memberDefects[j.Defect]; inject != nil {
		inject(&config)
	}
	c, err := consumer.New(config)
	if err != nil {
		return err
	}
	err = c.Run(ctx)
	var stuck *consumer.StuckError
	if errors.As(err, &stuck) {
		err = nil // scripts ignore their contexts
	}
	return errors.Join(err, writeMetrics(reader, j.metrics()))
}

// memberDefects and brokerDefects are filled by tests, which see that the checker finds them.
var memberDefects = map[string]func(*consumer.Config){}

// scripted is the handler of all members: it plays the record's script and tells the journal.
func scripted(own consumer.Handler, j *journal, timeout time.Duration) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		s, ok := parseScript(r.Headers)
		if !ok {
			return classify.Terminal(errors.New("a record of somebody else"))
		}
		d := consumer.DeliveryOf(ctx, r)
		due := int64(0)
		if !d.NotBefore.IsZero() {
			due = d.NotBefore.UnixMilli()
		}
		n, err := j.start(run{
			id: s.id, topic: d.Physical.Topic, partition: d.Physical.Partition, offset: d.Physical.Offset,
			attempt: d.Attempt, due: due,
		})
		if err != nil {
			fatal(err)
		}
		defer func() {
			if v := recover(); v != nil {
				if err := j.end(n, verdictPanic); err != nil {
					fatal(err)
				}
				panic(v)
			}
		}()
		result := s.play(ctx, r, own, timeout)
		if err := j.end(n, verdictOf(ctx, result)); err != nil {
			fatal(err)
		}
		return result
	}
}

// verdictOf says how a run ended that returned err.
func verdictOf(ctx context.Context, err error) verdict {
	if err == nil {
		return verdictPassed
	}
	if errors.Is(context.Cause(ctx), consumer.ErrDraining) {
		return verdictDrained
	}
	var c classify.Classifier
	switch c.Classify(err).Verdict {
	case classify.VerdictRetry:
		return verdictFailed
	case classify.VerdictDiscard:
		return verdictDiscard
	}
	return verdictTerminal
}

// fatal ends a member that can no longer tell what it does.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
	os.Exit(exitFailed)
}

// measured is what a member's metrics say at its end: sums and counts, by name and the attributes
// that matter.
type measured map[string]int64

// writeMetrics writes what the metrics say to a file.
func writeMetrics(reader *sdkmetric.ManualReader, name string) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return err
	}
	m := measured{}
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
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

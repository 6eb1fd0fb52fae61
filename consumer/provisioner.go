package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/retrytopics"
)

// provisioner provisions the siblings of the sources, and keeps what the brokers report about them.
// Its methods are safe for concurrent use.
type provisioner struct {
	spec     retrytopics.Spec
	siblings map[string]retrytopics.Siblings
	log      *slog.Logger
	throttle *logthrottle.Throttle
	admin    *kadm.Client
	limits   forward.BatchLimits

	// retentions holds the known retention.ms of siblings, by topic, as time.Duration; negative
	// means for ever.
	retentions sync.Map

	// ids holds the kadm.TopicIDs of the sources, by topic. A source that is recreated gets another
	// one.
	ids sync.Map

	// partitions holds the numbers of partitions of topics, by topic, as int32, as the monitor last
	// found them.
	partitions sync.Map
}

// partitionsOf returns how many partitions a topic has, if that is known.
func (p *provisioner) partitionsOf(topic string) (n int32, ok bool) {
	known, ok := p.partitions.Load(topic)
	n, _ = known.(int32)
	return n, ok
}

// id returns the id of a source, if it is known.
func (p *provisioner) id(source string) kadm.TopicID {
	id, _ := p.ids.Load(source)
	known, _ := id.(kadm.TopicID)
	return known
}

// ensure provisions the siblings of the topics as Config.Provision says, and reads the topics' ids.
func (p *provisioner) ensure(ctx context.Context, topics []string) error {
	all := make([]retrytopics.Siblings, 0, len(topics))
	for _, t := range topics {
		all = append(all, p.siblings[t])
	}
	report, err := retrytopics.Ensure(ctx, p.admin, p.spec, all...)
	p.logReport(report)
	if err != nil {
		return err
	}
	p.loadTopicConfigs(ctx, all)
	details, err := p.admin.ListTopics(ctx, topics...)
	if err != nil {
		return p.refused(ctx, topics, fmt.Errorf("metadata of the source topics: %w", err))
	}
	var missing []error
	for _, t := range topics {
		d, ok := details[t]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or remove it from Topics", t))
		case d.Err != nil:
			missing = append(missing, fmt.Errorf("topic %q: %w", t, d.Err))
		default:
			p.ids.Store(t, d.ID)
		}
	}
	return errors.Join(missing...)
}

// refused returns the error that Kafka gave for the topics. If a permission was missing, it names
// the permission and the topics: kadm stops at the first refusal without naming its topic, so
// refused asks for each topic by itself.
func (p *provisioner) refused(ctx context.Context, topics []string, err error) error {
	if _, ok := errors.AsType[*kadm.AuthError](err); !ok {
		return err
	}
	var named []error
	for _, t := range topics {
		_, err := p.admin.ListTopics(ctx, t)
		if _, ok := errors.AsType[*kadm.AuthError](err); ok {
			named = append(named, fmt.Errorf("topic %q: grant the operation READ on it: %w", t, err))
		}
	}
	if len(named) == 0 { // granted meanwhile
		return err
	}
	return errors.Join(named...)
}

// mostDifferences bounds the lines of logReport about siblings that are weaker than wanted.
const mostDifferences = 10

// logReport logs what Ensure changed, and what it found and does not change. Equal lines of later
// calls follow an hour apart.
func (p *provisioner) logReport(report retrytopics.Report) {
	if changes := (retrytopics.Report{Created: report.Created, Grown: report.Grown, Partitions: report.Partitions}); len(changes.Created)+len(changes.Grown) > 0 {
		p.throttle.Once("report "+changes.String(), time.Hour, func() {
			p.log.Info("siding: siblings provisioned", "report", changes.String())
		})
	}
	for i, d := range report.Differences[:min(len(report.Differences), mostDifferences)] {
		p.throttle.Once("weaker "+d.String(), time.Hour, func() {
			about := appendTexts([]any{"topic", d.Topic, "difference", d.String()}, "fix", d.Command())
			if more := len(report.Differences) - mostDifferences; i == mostDifferences-1 && more > 0 {
				about = append(about, "more", more)
			}
			p.log.Warn("siding: a sibling is weaker than Config.Provision wants, and siding does not change existing topics", about...)
		})
	}
}

// loadTopicConfigs reads the maximum batch size and the retention of the siblings. If the consumer
// lacks the permission, the retention is that of Config.Provision.
func (p *provisioner) loadTopicConfigs(ctx context.Context, all []retrytopics.Siblings) {
	if p.spec.Mode == retrytopics.Off {
		return // the consumer need not have the permission
	}
	var topics []string
	for _, s := range all {
		topics = append(topics, s.DLQ)
		for _, t := range s.Tiers {
			topics = append(topics, t.Topic)
		}
	}
	configs, err := p.admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		p.log.Debug("siding: could not read max.message.bytes and retention.ms of the siblings", "error", err)
	}
	for _, topic := range configs {
		for _, config := range topic.Configs {
			n, err := strconv.ParseInt(config.MaybeValue(), 10, 64)
			if err != nil || topic.Err != nil {
				continue
			}
			switch config.Key {
			case "max.message.bytes":
				p.limits.Learn(topic.Name, n)
			case "retention.ms":
				p.retentions.Store(topic.Name, retentionMillis(n))
			}
		}
	}
}

// retentionMillis converts a retention.ms to a duration; negative means for ever.
func retentionMillis(n int64) time.Duration {
	if n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return -1
	}
	return time.Duration(n) * time.Millisecond
}

// retentionOf returns how long a tier keeps a record: the topic's retention if known, else that of
// Config.Provision. Negative means for ever.
func (p *provisioner) retentionOf(topic string, delay time.Duration) time.Duration {
	if keeps, ok := p.retentions.Load(topic); ok {
		return keeps.(time.Duration)
	}
	return p.spec.RetentionOf(delay)
}

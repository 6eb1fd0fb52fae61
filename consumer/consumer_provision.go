package consumer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/retrytopics"
)

// provision sees to the siblings of the topics as Config.Provision says, and learns the topics'
// ids.
func (c *Consumer) provision(ctx context.Context, topics []string) error {
	all := make([]retrytopics.Siblings, 0, len(topics))
	for _, t := range topics {
		all = append(all, c.siblings[t])
	}
	report, err := retrytopics.Ensure(ctx, c.admin, c.cfg.Provision, all...)
	if len(report.Created) > 0 || len(report.Grown) > 0 || len(report.Differences) > 0 {
		c.throttle.Once("report "+report.String(), time.Hour, func() { c.log.Info("siding: siblings provisioned", "report", report.String()) })
	}
	if err != nil {
		return err
	}
	c.loadTopicConfigs(ctx, all)
	details, err := c.admin.ListTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("metadata of the source topics: %w", err)
	}
	var missing []error
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		d, ok := details[t]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or take it out of Topics", t))
		case d.Err != nil:
			missing = append(missing, fmt.Errorf("topic %q: %w", t, d.Err))
		default:
			c.ids[t] = d.ID
		}
	}
	return errors.Join(missing...)
}

// loadTopicConfigs asks how large a batch the siblings take, and for how long they keep it. The
// consumer may lack the permission to ask; the retention is then what Provision says.
func (c *Consumer) loadTopicConfigs(ctx context.Context, all []retrytopics.Siblings) {
	if c.cfg.Provision.Mode == retrytopics.Off {
		return // there is to be no right to ask
	}
	var topics []string
	for _, s := range all {
		topics = append(topics, s.DLQ)
		for _, t := range s.Tiers {
			topics = append(topics, t.Topic)
		}
	}
	configs, err := c.admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		c.log.Debug("siding: max.message.bytes and retention.ms of the siblings are not known", "error", err)
	}
	for _, topic := range configs {
		for _, config := range topic.Configs {
			n, err := strconv.ParseInt(config.MaybeValue(), 10, 64)
			if err != nil || topic.Err != nil {
				continue
			}
			switch config.Key {
			case "max.message.bytes":
				c.batchLimits.Learn(topic.Name, n)
			case "retention.ms":
				c.retentions.Store(topic.Name, retentionMillis(n))
			}
		}
	}
}

// retentionMillis is a retention.ms as a duration, negative for ever.
func retentionMillis(n int64) time.Duration {
	if n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return -1
	}
	return time.Duration(n) * time.Millisecond
}

// retentionOf is how long a tier keeps a record: as the topic says, where that is known, else by
// Config.Provision. Negative is for ever.
func (c *Consumer) retentionOf(topic string, delay time.Duration) time.Duration {
	if keeps, ok := c.retentions.Load(topic); ok {
		return keeps.(time.Duration)
	}
	return c.cfg.Provision.RetentionOf(delay)
}

package consumer

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

// loadBatchLimits asks how large a batch the siblings take, and for how long they keep it. Without the answer, which the consumer may
// have no right to, a batch that is too large is refused, and its copies go on one at a time: slower, and as safe; the retention
// is then what Provision says.
func (c *Consumer) loadBatchLimits(ctx context.Context, all []retrytopics.Siblings) {
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
				c.batchLimits.Store(topic.Name, int32(min(n, math.MaxInt32)))
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

// minBatch is the least that kgo takes for a limit.
const minBatch = 512

// batchLimit is kgo's limit of a batch to a topic, in bytes before compression: the user's, or the topic's where that is less. kgo
// asks when it first writes to a partition.
func (c *Consumer) batchLimit(topic string) int32 {
	users, _ := c.retryCl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	limit := users(topic)
	if n, ok := c.batchLimits.Load(topic); ok {
		limit = min(limit, max(n.(int32), minBatch))
	}
	return limit
}

package programs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/IBM/sarama"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// saramaConfig is for sarama, and for watermill, which uses it.
func saramaConfig() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.ChannelBufferSize = ahead
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Interval = commitInterval
	cfg.Consumer.Fetch.Default = fetch
	cfg.Consumer.MaxWaitTime = fetchWait
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true // a SyncProducer needs it
	return cfg
}

// saramaGroup is sarama's consumer group, with a loop by hand: it handles what a claim has at the
// moment, writes the dead letters of that, and then marks it.
func saramaGroup(ctx context.Context, j work.Job, handle work.Handler) (err error) {
	producer, err := sarama.NewSyncProducer(j.Seeds, saramaConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close()) }()
	group, err := sarama.NewConsumerGroup(j.Seeds, j.Group, saramaConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	claims := saramaClaims{j, handle, producer, fail}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{j.Topic}, claims); err != nil {
			fail(err)
		}
	}
	return ended(ctx)
}

// saramaClaims handles claims, each in a goroutine of the library.
type saramaClaims struct {
	job      work.Job
	handle   work.Handler
	producer sarama.SyncProducer
	fail     context.CancelCauseFunc
}

// Setup does nothing.
func (saramaClaims) Setup(sarama.ConsumerGroupSession) error { return nil }

// Cleanup does nothing.
func (saramaClaims) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim handles a partition until the session ends.
func (c saramaClaims) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	ctx := s.Context()
	for {
		messages := batch(ctx, claim.Messages())
		if len(messages) == 0 {
			return nil
		}
		var letters []*sarama.ProducerMessage
		for _, m := range messages {
			err := attempt(ctx, c.job, c.handle, m.Value)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				letters = append(letters, saramaLetter(m, c.job.DLQ, err))
			}
		}
		if len(letters) > 0 {
			if err := c.producer.SendMessages(letters); err != nil {
				c.fail(fmt.Errorf("writing dead letters: %w", err))
				return err
			}
		}
		s.MarkMessage(messages[len(messages)-1], "")
	}
}

// saramaLetter is the message with headers about its failure.
func saramaLetter(m *sarama.ConsumerMessage, dlq string, err error) *sarama.ProducerMessage {
	letter := &sarama.ProducerMessage{Topic: dlq, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value), Headers: []sarama.RecordHeader{
		{Key: []byte("error"), Value: []byte(err.Error())},
		{Key: []byte("topic"), Value: []byte(m.Topic)},
		{Key: []byte("partition"), Value: strconv.AppendInt(nil, int64(m.Partition), 10)},
		{Key: []byte("offset"), Value: strconv.AppendInt(nil, m.Offset, 10)},
	}}
	for _, h := range m.Headers {
		letter.Headers = append(letter.Headers, *h)
	}
	return letter
}

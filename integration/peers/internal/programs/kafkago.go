package programs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// kafkaGo is segmentio's kafka-go with the loop of explicit commits of its README, which hands the
// messages to a goroutine for each partition.
func kafkaGo(ctx context.Context, j work.Job, handle work.Handler) (err error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        j.Seeds,
		GroupID:        j.Group,
		Topic:          j.Topic,
		StartOffset:    kafka.FirstOffset,
		QueueCapacity:  ahead * j.Partitions,
		MinBytes:       1,
		MaxBytes:       fetch,
		MaxWait:        fetchWait,
		CommitInterval: commitInterval,
	})
	defer func() { err = errors.Join(err, reader.Close()) }() // it commits

	// The default one is the process's, and may not know new topics.
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Transport:    transport,
		Addr:         kafka.TCP(j.Seeds...),
		Topic:        j.DLQ,
		Balancer:     &kafka.Hash{},
		RequiredAcks: kafka.RequireAll,
		BatchSize:    ahead,
		BatchTimeout: time.Millisecond, // its default of 1 s would be each batch's latency
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	lane := kafkaGoLane{j, handle, reader, writer}
	l := lanes[kafka.Message]{depth: ahead, work: func(messages <-chan kafka.Message) {
		for b := batch(ctx, messages); len(b) > 0; b = batch(ctx, messages) {
			if err := lane.do(ctx, b); err != nil {
				fail(err)
			}
		}
	}}
	defer l.close()
	for {
		m, err := reader.FetchMessage(ctx)
		if err != nil {
			fail(err)
		}
		if err != nil || !l.put(ctx, int32(m.Partition), m) {
			return ended(ctx)
		}
	}
}

// A kafkaGoLane does the work of a partition.
type kafkaGoLane struct {
	job    work.Job
	handle work.Handler
	reader *kafka.Reader
	writer *kafka.Writer
}

// do handles what there is at the moment, writes the dead letters of that, and then commits it.
func (l kafkaGoLane) do(ctx context.Context, messages []kafka.Message) error {
	var letters []kafka.Message
	for _, m := range messages {
		err := attempt(ctx, l.job, l.handle, m.Value)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			letters = append(letters, kafkaGoLetter(m, err))
		}
	}
	if len(letters) > 0 {
		if err := l.writer.WriteMessages(ctx, letters...); err != nil {
			return fmt.Errorf("writing dead letters: %w", err)
		}
	}
	return l.reader.CommitMessages(ctx, messages[len(messages)-1])
}

// kafkaGoLetter is the message with headers about its failure.
func kafkaGoLetter(m kafka.Message, err error) kafka.Message {
	return kafka.Message{Key: m.Key, Value: m.Value, Headers: append(m.Headers,
		kafka.Header{Key: "error", Value: []byte(err.Error())},
		kafka.Header{Key: "topic", Value: []byte(m.Topic)},
		kafka.Header{Key: "partition", Value: strconv.AppendInt(nil, int64(m.Partition), 10)},
		kafka.Header{Key: "offset", Value: strconv.AppendInt(nil, m.Offset, 10)},
	)}
}

package programs

import (
	"context"
	"errors"
	"time"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// watermill is watermill's router over watermill-kafka, with its middlewares for retries and for a
// poison queue.
func watermill(ctx context.Context, j work.Job, handle work.Handler) (err error) {
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: j.Seeds, Marshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: saramaConfig(),
	}, wm.NopLogger{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: j.Seeds, Unmarshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: saramaConfig(), ConsumerGroup: j.Group,
	}, wm.NopLogger{})
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, wm.NopLogger{})
	if err != nil {
		return errors.Join(err, subscriber.Close())
	}
	poison, err := middleware.PoisonQueue(publisher, j.DLQ)
	if err != nil {
		return errors.Join(err, subscriber.Close())
	}
	router.AddMiddleware(poison)
	if len(j.Waits) > 0 {
		router.AddMiddleware(middleware.Retry{
			MaxRetries: len(j.Waits), InitialInterval: j.Waits[0], Multiplier: 2, MaxInterval: time.Minute,
		}.Middleware)
	}
	router.AddConsumerHandler("peer", j.Topic, subscriber, func(m *message.Message) error {
		return handle(m.Context(), m.Payload)
	})
	return router.Run(ctx)
}

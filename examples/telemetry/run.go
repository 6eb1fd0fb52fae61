package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// run produces three orders, of which one is busy at first and one is broken, and prints the
// consumer's telemetry.
func run(ctx context.Context, out io.Writer) error {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return fmt.Errorf("start the embedded broker: %w", err)
	}
	defer broker.Close()
	brokers := kgo.SeedBrokers(broker.ListenAddrs()...)

	// A service sets up where spans and metrics go.
	spans := &spanPrinter{out: out}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer func() { _ = tracers.Shutdown(context.WithoutCancel(ctx)) }()
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = meters.Shutdown(context.WithoutCancel(ctx)) }()

	if err := produce(ctx, brokers, tracers.Tracer("shop")); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c, err := consumer.New(consumer.Config{
		Group:          "billing",
		Topics:         []string{"orders"},
		Kafka:          []kgo.Opt{brokers},
		Policy:         consumer.Policy{Tiers: []time.Duration{200 * time.Millisecond}},
		TracerProvider: tracers,
		MeterProvider:  meters,
		ErrorText:      withoutCard,
		Logger:         slog.New(slog.DiscardHandler),
		Handler: func(ctx context.Context, r *kgo.Record) error {
			// The context carries the attempt's span, so calls of the handler join its trace.
			trace.SpanFromContext(ctx).AddEvent("charging")
			switch {
			case string(r.Value) == "busy" && consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.As(classify.Retryable(errors.New("the gateway is busy")), "payment.busy")
			case string(r.Value) == "broken":
				return classify.As(errors.New("card 4111111111111111: refused"), "payment.refused")
			case string(r.Value) == "busy":
				time.AfterFunc(100*time.Millisecond, cancel) // the last order of this example
			}
			return nil
		},
	})
	if err != nil {
		return err
	}

	// A consumer's observable metrics exist while it runs, so they are collected before it ends.
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case <-spans.seen(7): // the producer's three, and four attempts
	case err := <-done:
		return errors.Join(err, errors.New("the consumer ended early"))
	}
	fmt.Fprintln(out)
	if err := printMetrics(context.WithoutCancel(ctx), out, reader); err != nil {
		return err
	}
	return <-done
}

// withoutCard removes the card's number from headers, logs and spans.
func withoutCard(err error) string {
	return strings.ReplaceAll(err.Error(), "4111111111111111", "****")
}

// produce writes the orders, each with the span of its producer in its headers.
func produce(ctx context.Context, brokers kgo.Opt, tracer trace.Tracer) error {
	cl, err := kgo.NewClient(brokers)
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, -1, nil, "orders"); err != nil {
		return err
	}
	for _, value := range []string{"busy", "broken", "fine"} {
		spanCtx, span := tracer.Start(ctx, "send orders", trace.WithSpanKind(trace.SpanKindProducer))
		headers := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(spanCtx, headers)
		r := &kgo.Record{Topic: "orders", Value: []byte(value)}
		for key, value := range headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
		}
		err := cl.ProduceSync(ctx, r).FirstErr()
		span.End()
		if err != nil {
			return err
		}
	}
	return nil
}

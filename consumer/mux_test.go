package consumer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// Without this, each record would be dead-lettered when it arrives.
func TestMux_WithoutARouteIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v == nil {
			t.Error("NewMux(nil) returned")
		}
	}()
	consumer.NewMux(nil)
}

func TestMux_RemovesAHandler(t *testing.T) {
	t.Parallel()
	m := consumer.NewMux(consumer.ByTopic)
	served := errors.New("served")
	m.Handle("orders", func(context.Context, *kgo.Record) error { return served })
	if err := m.Serve(t.Context(), &kgo.Record{Topic: "orders"}); !errors.Is(err, served) {
		t.Errorf("with a handler: %v", err)
	}
	m.Handle("orders", nil)
	if err := m.Serve(t.Context(), &kgo.Record{Topic: "orders"}); new(classify.Classifier).Classify(err).Class != "unroutable" {
		t.Errorf("without one: %v", err)
	}
}

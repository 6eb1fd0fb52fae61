package drivers_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestKafka_WhatTheProtocolCallsRetriableIsRetried(t *testing.T) {
	t.Parallel()
	retriable := 0
	for code := int16(-1); code < 200; code++ {
		err := kerr.ErrorForCode(code)
		var e *kerr.Error
		if !errors.As(err, &e) || e.Code != code {
			continue // no error has this code
		}
		verdict := "unknown"
		if kerr.IsRetriable(err) {
			verdict = "retry"
			retriable++
		}
		means(t, e.Message, fmt.Errorf("publish: %w", err), "kafka."+e.Message, verdict)
	}
	if retriable == 0 {
		t.Error("no code is retriable")
	}
}

func TestKafka_RecordsThatCannotBeWrittenInTime(t *testing.T) {
	t.Parallel()
	c, err := kgo.NewClient(kgo.SeedBrokers(closedPort(t)), kgo.RecordDeliveryTimeout(time.Second), kgo.MaxBufferedRecords(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, second := make(chan error, 1), make(chan error, 1)
	c.TryProduce(t.Context(), &kgo.Record{Topic: "orders"}, func(_ *kgo.Record, err error) { first <- err })
	c.TryProduce(t.Context(), &kgo.Record{Topic: "orders"}, func(_ *kgo.Record, err error) { second <- err })
	means(t, "there is no room", fmt.Errorf("publish: %w", <-second), "kafka.produce", "retry")
	means(t, "no broker accepts it", fmt.Errorf("publish: %w", <-first), "kafka.produce", "retry")
	means(t, "too many retries", kgo.ErrRecordRetries, "kafka.produce", "retry")
}

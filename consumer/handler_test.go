package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// registryError is an HTTP status, as clients return it.
type registryError int

func (e registryError) Error() string   { return fmt.Sprint("the registry answers ", int(e)) }
func (e registryError) StatusCode() int { return int(e) }

// An outage of the registry had class decode, which is terminal. One minute of it moved the whole
// topic to the dead-letter topic.
func TestDecode_OutageOfWhatItNeedsIsRetried(t *testing.T) {
	t.Parallel()
	registry := httptest.NewServer(nil)
	registry.Close()
	_, refused := http.Get(registry.URL)
	if refused == nil {
		t.Fatal("a closed server answers")
	}
	rules := classify.Classifier{Rules: []classify.Rule{
		classify.Is(io.ErrClosedPipe, classify.VerdictRetry, "registry.pipe"), classify.Is(io.ErrShortBuffer, classify.VerdictDiscard, ""),
	}}
	for name, tt := range map[string]struct {
		err     error
		verdict classify.Verdict
		class   string
	}{
		"refused":              {refused, classify.VerdictRetry, "net.refused"},
		"503":                  {fmt.Errorf("schema 7: %w", registryError(503)), classify.VerdictRetry, "http.503"},
		"429":                  {registryError(429), classify.VerdictRetry, "http.429"},
		"deadline":             {context.DeadlineExceeded, classify.VerdictRetry, "decode.timeout"},
		"a rule":               {fmt.Errorf("schema 7: %w", io.ErrClosedPipe), classify.VerdictRetry, "registry.pipe"},
		"a rule that discards": {io.ErrShortBuffer, classify.VerdictDiscard, "unclassified"},
		"its own word":         {classify.As(classify.Retryable(errors.New("?")), "registry.away"), classify.VerdictRetry, "registry.away"},
		"its word on a 503":    {classify.Terminal(registryError(503)), classify.VerdictTerminal, "http.503"},
		"404":                  {registryError(404), classify.VerdictTerminal, "decode"},
		"500":                  {registryError(500), classify.VerdictTerminal, "decode"},
		"the payload's end":    {io.ErrUnexpectedEOF, classify.VerdictTerminal, "decode"},
		"no payload":           {io.EOF, classify.VerdictTerminal, "decode"},
		"anything else":        {errors.New("magic byte 7"), classify.VerdictTerminal, "decode"},
		"a newer schema":       {classify.UnsupportedVersion(errors.New("schema 8")), classify.VerdictTerminal, "unsupported-version"},
	} {
		handler := consumer.Decode(
			func(context.Context, *kgo.Record) (int, error) { return 0, tt.err },
			func(context.Context, *kgo.Record, int) error { return nil })
		if r := rules.Classify(handler(t.Context(), &kgo.Record{})); r.Verdict != tt.verdict || r.Class != tt.class || r.Default {
			t.Errorf("%s: %v of class %s, want %v of class %s", name, r.Verdict, r.Class, tt.verdict, tt.class)
		}
	}
}

// A decoder gets the attempt's context. Its failures, panics and timeouts have their own classes.
func TestDecode_TellsItsFailuresApart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		decode := func(ctx context.Context, r *kgo.Record) (string, error) {
			attempt := consumer.DeliveryOf(ctx, r).Attempt
			switch value := string(r.Value); {
			case value == "panics":
				panicInDecoder()
			case value == "newer":
				return "", classify.As(classify.UnsupportedVersion(errors.New("schema 8")), "orders.v8")
			case value == "slow" && attempt == 1:
				<-ctx.Done()
				return "", context.Cause(ctx)
			case value == "late" && attempt == 1:
				<-ctx.Done() // and goes on as if nothing had happened
			}
			return string(r.Value), nil
		}
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{HandlerTimeout: time.Second},
			Handler: consumer.Decode(decode, func(ctx context.Context, _ *kgo.Record, value string) error {
				if ctx.Err() != nil {
					t.Errorf("the handler of %s is called when the time is over", value)
				}
				if value == "handler" {
					panic("boom")
				}
				return nil
			}),
		})
		records := map[string]*kgo.Record{}
		for _, value := range []string{"panics", "handler", "newer", "slow", "late"} {
			records[value] = k.Produce(&kgo.Record{Topic: "orders", Value: []byte(value)})[0]
		}
		m := k.DeadLettered(records["panics"], headers.ReasonPanic)
		if m.Class != "decode.panic.string" || !strings.HasPrefix(m.Message, "decode: panic: ") || !strings.Contains(m.Stack, "panicInDecoder") {
			t.Errorf("a decoder's panic: class %s, message %q, stack %s", m.Class, m.Message, m.Stack)
		}
		if m := k.DeadLettered(records["handler"], headers.ReasonPanic); m.Class != "panic.string" || m.Message != "panic: boom" {
			t.Errorf("a handler's panic: class %s, message %q", m.Class, m.Message)
		}
		if m := k.DeadLettered(records["newer"], headers.ReasonUnsupportedVersion); m.Class != "orders.v8" {
			t.Errorf("a newer schema: class %s", m.Class)
		}
		for _, value := range []string{"slow", "late"} {
			k.Parked(records[value], 5*time.Second, "decode.timeout")
			k.Handled(records[value], 1)
		}
		k.Conserved()
	})
}

func panicInDecoder() { panic("magic byte 7") }

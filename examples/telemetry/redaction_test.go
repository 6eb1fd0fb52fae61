package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// card must not be visible anywhere.
const card = "4111111111111111"

// The traces of a record's failure: copies, log lines, spans, metrics, health, and the arguments of
// hooks.
func TestWhatErrorTextKeepsOutIsNowhere(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka) {
		o := newTelemetry(t)
		var left notes
		cfg := o.config(func(_ context.Context, r *kgo.Record) error {
			err := fmt.Errorf("charge: %w", errors.New("card "+card+" is refused"))
			switch string(r.Value) {
			case "busy":
				return classify.Retryable(err)
			case "old":
				return classify.Discard(err)
			case "late":
				return classify.RetryAfter(errors.Join(errBusy, err), time.Minute)
			case "panics":
				panic(err)
			case "panics with text":
				panic("card " + card + " is refused")
			}
			return err
		})
		cfg.ErrorText = withoutCard
		cfg.Logger = slog.New(slog.NewTextHandler(&left, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Hooks = []consumer.Hook{hookRecorder{&left}}
		cfg.Policy = consumer.Policy{Tiers: minute.Tiers, Immediate: consumer.Immediate{Attempts: 1}}
		c := k.Run(cfg)
		records := k.Produce(order("busy"), order("bad"), order("old"), order("late"), order("panics"), order("panics with text"))
		for i, reason := range []headers.Reason{headers.ReasonExhausted, headers.ReasonTerminal, "", headers.ReasonExhausted, headers.ReasonPanic, headers.ReasonPanic} {
			if reason == "" {
				continue
			}
			k.Parked(records[0], time.Minute, "")
			if m := k.DeadLettered(records[i], reason); !strings.Contains(m.Message, "card **** is refused") || strings.Contains(fmt.Sprintf("%+v", m), card) {
				t.Errorf("the dead letter of %s says %+v", records[i].Value, m)
			}
		}
		fmt.Fprintf(&left, "%+v\n%+v\n", c.Health(), o.metrics())
		stop(t, c)
		statuses := 0
		for _, s := range o.ended() {
			if strings.Contains(s.Status().Description, "card **** is refused") {
				statuses++
			}
			fmt.Fprintf(&left, "%s %+v %+v %+v\n", s.Name(), s.Status(), s.Attributes(), s.Events())
		}
		for line := range strings.Lines(left.String()) {
			if strings.Contains(line, card) {
				t.Errorf("left behind: %s", line)
			}
		}
		if statuses < 8 || !strings.Contains(left.String(), "card **** is refused") {
			t.Errorf("%d spans have the text that is let through, want those of 6 records and of their retries; and logs:\n%s", statuses, &left)
		}
	})
}

// notes collects the traces, from any goroutine.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// hookRecorder records the arguments of hooks.
type hookRecorder struct{ left *notes }

func (h hookRecorder) OnDeadLettered(e consumer.Routed) {
	fmt.Fprintf(h.left, "dead-lettered %+v %q\n", e.Meta, e.Record.Headers)
}

func (h hookRecorder) OnParked(e consumer.Routed) {
	fmt.Fprintf(h.left, "parked %+v %q\n", e.Meta, e.Record.Headers)
}

func (h hookRecorder) OnDiscarded(e consumer.Routed) {
	fmt.Fprintf(h.left, "discarded %+v %q\n", e.Meta, e.Record.Headers)
}

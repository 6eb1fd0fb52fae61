package redrive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// framed are values of JSON behind a byte of 0 and one of a schema, which knows no text "bad".
type framed struct{}

func (framed) DecodeValue(_ context.Context, r *kgo.Record) ([]byte, error) {
	switch {
	case len(r.Value) < 2 || r.Value[0] != 0:
		return nil, nil
	case r.Value[1] == '?':
		return nil, errors.New("the registry is down")
	}
	return r.Value[2:], nil
}

func (framed) EncodeValue(_ context.Context, r *kgo.Record, json []byte) ([]byte, error) {
	if bytes.Contains(json, []byte("bad")) {
		return nil, errors.New("it does not fit")
	}
	return append(r.Value[:2:2], json...), nil
}

// A patch changes what the values say, and each goes back by its own schema. A plan writes a new
// value, so that a process without the registry can resume the run. What does not fit, or cannot be
// read, is not sent.
func TestValues_AreEditedBySchema(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		var s switched
		s.set(failing("tax"))
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle})
		for _, value := range []string{"\x00A{\"a\":1,\"b\":2}", "\x00B{\"a\":2}", "\x00?{}", `{"a":4}`, "\x00C{\"a\":5}"} {
			k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte(value)})[0], "terminal")
		}
		var got received
		s.set(got.take)
		r := redriverOf(t, redrive.Config{Kafka: k.Opts(), Values: framed{}})
		at := func(offset int64) dlq.Filter { return dlq.Filter{Ranges: []dlq.Range{dlq.At(0, offset)}} }
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: at(0), Edit: redrive.Edit{Value: []byte(`{"a":"bad"}`)}})
		refused(t, err, redrive.RefusedEdit, "letter orders.dlq/0/0: it does not fit")
		_, err = r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: at(2), Edit: redrive.Edit{Patch: []byte(`{}`)}})
		refused(t, err, redrive.RefusedEdit, "letter orders.dlq/0/2: the value: the registry is down")
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{{Partition: 0, Until: 4}}}, Edit: redrive.Edit{Patch: []byte(`{"a":9}`)}})
		if p.Letters != 3 || p.Skipped[redrive.SkippedEdit] != 1 {
			t.Errorf("the plan is %+v", p)
		}
		succeeds(t, 3)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		p = planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: at(4), Edit: redrive.Edit{Value: []byte(`{"new":1}`)}})
		succeeds(t, 1)(redriver(t, k).Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		var values []string
		for _, r := range got.all {
			values = append(values, string(r.Value))
		}
		if want := fmt.Sprintf("%q", []string{"\x00A{\"a\":9,\"b\":2}", "\x00B{\"a\":9}", `{"a":9}`, "\x00C{\"new\":1}"}); fmt.Sprintf("%q", values) != want {
			t.Errorf("the handler got %q, want %s", values, want)
		}
	})
}

func TestEdit_TakesANewValueWithItsFrame(t *testing.T) {
	t.Parallel()
	r := &kgo.Record{Value: []byte("\x00A{}"), Headers: []kgo.RecordHeader{{Key: "x"}, {Key: "dlq-group", Value: []byte("g")}}}
	for value, want := range map[string]string{"\x00Bnew": "\x00Bnew", `{"n":1}`: "\x00A{\"n\":1}"} {
		e := redrive.Edit{Value: []byte(value)}
		if h, got, err := e.ApplyBy(t.Context(), framed{}, r); err != nil || string(got) != want || len(h) != 1 {
			t.Errorf("%q became %q, %v, with %v", value, got, err, h)
		}
	}
}

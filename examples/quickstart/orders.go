package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// idHeader carries an order's id, so that an order whose value cannot be read can be followed too.
const idHeader = "order-id"

// order is the payload.
type order struct {
	ID    string `json:"id"`
	SKU   string `json:"sku"`
	Cents int    `json:"cents"`
	// Busy is how often the payment gateway will be busy for this order. A real order has no such
	// field.
	Busy int `json:"busy,omitempty"`
}

const always = 99

// The orders that fail, mixed into the stream at even distances.
var troubled = []func(*order) (value []byte){
	busy(1), undecodable, busy(2), unknownSKU, busy(always), busy(3),
	busy(1), undecodable, busy(2), panics, busy(always), busy(3),
	busy(1), undecodable, busy(2), unknownSKU, busy(always), busy(3),
}

func good(o *order) []byte {
	value, _ := json.Marshal(o) // strings and numbers
	return value
}

func busy(times int) func(*order) []byte {
	return func(o *order) []byte {
		o.Busy = times
		return good(o)
	}
}

func unknownSKU(o *order) []byte {
	o.SKU = "unicorn"
	return good(o)
}

func panics(o *order) []byte {
	o.SKU = ""
	return good(o)
}

func undecodable(o *order) []byte {
	value := good(o)
	return value[:len(value)/2]
}

// newOrder returns the n-th of a number of records, and whether the handler will accept it at once.
func newOrder(topic string, n, of int) (r *kgo.Record, id string, healthy bool) {
	id = fmt.Sprintf("order-%04d", n)
	o := &order{ID: id, SKU: "teapot", Cents: 1000 + n}
	value, healthy := good, true
	every := of / len(troubled)
	if at := n / every; n%every == every/2 && at < len(troubled) {
		value, healthy = troubled[at], false
	}
	return &kgo.Record{
		Topic: topic, Key: fmt.Appendf(nil, "customer-%d", n%40), Value: value(o),
		Headers: []kgo.RecordHeader{{Key: idHeader, Value: []byte(id)}},
	}, id, healthy
}

// idOf returns the id of an order, from any copy of it.
func idOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == idHeader {
			return string(h.Value)
		}
	}
	return ""
}

// errBusy is temporary.
var errBusy = errors.New("gateway is busy")

// UnknownSKU is permanent. No rule classifies it, so it is terminal, and the name of its type is
// its class.
type UnknownSKU struct{ SKU string }

func (e UnknownSKU) Error() string { return fmt.Sprintf("unknown SKU %q", e.SKU) }

// charge is the business logic of this service.
func charge(ctx context.Context, r *kgo.Record, o order) error {
	if o.SKU[0] == 'u' { // panics for an empty SKU: a bug that affects its order and nothing else
		return UnknownSKU{o.SKU}
	}
	select {
	case <-time.After(time.Millisecond): // the gateway's time
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if consumer.DeliveryOf(ctx, r).Attempt <= o.Busy {
		return classify.As(classify.Retryable(errBusy), "payment.busy")
	}
	return nil
}

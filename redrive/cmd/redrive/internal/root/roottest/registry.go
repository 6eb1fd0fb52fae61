package roottest

// A schema registry of the tests, and letters with its schemas.

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/sidingkafka/siding/headers"
)

// NewRegistry starts a registry that has a schema of orders, by the number 7.
func NewRegistry(t *testing.T) *srfake.Registry {
	t.Helper()
	r := srfake.New()
	t.Cleanup(r.Close)
	r.SeedSchema("orders-value", 1, 7, sr.Schema{Type: sr.TypeAvro, Schema: `{"type":"record","name":"Order","namespace":"shop","fields":[
		{"name":"card","type":"string"},
		{"name":"amount","type":"long"},
		{"name":"currency","type":["null","string"],"default":null}]}`})
	return r
}

// Order is a letter of a record that the schema describes. Its card and its amount have one byte
// each.
func Order(partition int32, card byte, amount byte) *kgo.Record {
	l := Letter("orders.dlq", partition, time.Hour, headers.Meta{Original: headers.Position{Topic: "orders", Partition: partition}, Group: "billing", Class: "tax"})
	l.Value = OrderValue(card, amount)
	return l
}

// OrderValue is the value of an order.
func OrderValue(card, amount byte) []byte {
	return []byte{0, 0, 0, 0, 7, 2, card, amount << 1, 0}
}

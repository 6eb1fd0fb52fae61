package serve_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// Whom an incident hurts: by a header or a member, with any filter, and without what is hidden.
func TestServer_CountsLettersByAField(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{Redact: serve.Redact{Paths: []string{"card"}}})
	for i := range 300 {
		c.write("orders", []string{"tax", "busy"}[i%2], &kgo.Record{
			Value:   fmt.Appendf(nil, `{"customer":"c%d","card":"4111"}`, i%3),
			Headers: []kgo.RecordHeader{{Key: "tenant", Value: fmt.Append(nil, "t", i%20)}},
		})
	}
	// Hidden: nobody knows if a card is in it.
	c.write("orders", "tax", &kgo.Record{Value: []byte("no JSON")})
	opens(t, cl, "orders.dlq", 301)
	got, err := cl.Values(t.Context(), "orders.dlq", "value.customer", api.Filter{})
	want := []api.ValueCount{{Value: "c0", Open: 100, AtLeast: 100}, {Value: "c1", Open: 100, AtLeast: 100}, {Value: "c2", Open: 100, AtLeast: 100}}
	if err != nil || got.By != "value.customer" || got.Counted != 301 || !got.Complete || !got.Exact || got.Values != 3 || got.Others != 0 || got.Hidden != 1 || !slices.Equal(got.Top, want) {
		t.Errorf("by customer: %+v, %v", got, err)
	}
	got, err = cl.Values(t.Context(), "orders.dlq", "header:tenant", api.Filter{Class: []string{"tax"}, Where: "value.customer == \"c0\""})
	if err != nil || got.Counted != 50 || len(got.Top) != 10 || got.Top[0].Open != 5 || got.Others != 0 || got.Problem == "" {
		t.Errorf("by tenant, of a class and a customer: %+v, %v", got, err)
	}
	got, err = cl.Values(t.Context(), "orders.dlq", "header:tenant", api.Filter{})
	if err != nil || got.Counted != 301 || len(got.Top) != 10 || got.Values != 20 || got.Others != 150 || got.Without != 1 {
		t.Errorf("by tenant: %+v, %v", got, err)
	}
	got, err = cl.Values(t.Context(), "orders.dlq", "value.card", api.Filter{})
	if err != nil || got.Hidden != 301 || len(got.Top) != 0 {
		t.Errorf("by what is hidden: %+v, %v", got, err)
	}
	if _, err := cl.Values(t.Context(), "orders.dlq", "customer", api.Filter{}); !client.IsProblem(err, api.BadFilter) {
		t.Errorf("by no field: %v", err)
	}
}

package serve_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// An export has the letters as the program exports them, so that it can import them.
func TestServer_ExportsLikeTheProgram(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{})
	c.fail("orders", "decode", 40)
	c.fail("orders", "http.503", 20)
	opens(t, cl, "orders.dlq", 60)
	if _, err := cl.Discard(t.Context(), "orders.dlq", api.BulkDiscardRequest{Filter: api.Filter{Offset: []string{"0:0-4"}}, Expect: 5, DiscardRequest: api.DiscardRequest{Why: "x"}}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter api.Filter
		all    bool
		want   int
	}{
		"open": {api.Filter{}, false, 55}, "all": {api.Filter{}, true, 60}, "class": {api.Filter{Class: []string{"http.*"}}, false, 20},
		"state": {api.Filter{State: []string{"discarded"}}, false, 5}, "where": {api.Filter{Where: "partition == 1"}, true, 20},
	} {
		body, err := cl.Export(t.Context(), "orders.dlq", test.filter, test.all)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		_ = body.Close()
		if n := bytes.Count(text, []byte("\n")); n != test.want {
			t.Errorf("%s: %d lines, want %d", name, n, test.want)
		}
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...)
		if p, err := l.PreviewImport(t.Context(), bytes.NewReader(text), nil); err != nil || p.Broken != nil {
			t.Errorf("%s: it cannot be imported: %+v, %v", name, p, err)
		}
	}
}

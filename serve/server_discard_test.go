package serve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// A letter that waited in a partition that its source lost was pending for ever: it is reopened,
// too.
func TestServer_DiscardsALetterAndReopensIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	c.fail("orders", "decode", 3) // one on each partition
	opens(t, cl, "orders.dlq", 3)
	if _, err := cl.DiscardLetter(t.Context(), "orders.dlq", 1, 0, api.DiscardRequest{Why: "refunded", Compensated: true}); err != nil {
		t.Fatal(err)
	}
	if l, err := cl.Letter(t.Context(), "orders.dlq", 1, 0); err != nil || l.State != "compensated" {
		t.Errorf("the letter is %+v, %v", l, err)
	}
	if _, err := cl.DiscardLetter(t.Context(), "orders.dlq", 1, 0, api.DiscardRequest{Why: "again"}); !client.IsProblem(err, api.NotOpen) {
		t.Errorf("a letter that is discarded: %v", err)
	}
	if _, err := cl.DiscardLetter(t.Context(), "orders.dlq", 1, 77, api.DiscardRequest{Why: "x"}); !client.IsProblem(err, api.NoLetter) {
		t.Errorf("a letter that does not exist: %v", err)
	}
	if _, err := cl.ReopenLetter(t.Context(), "orders.dlq", 1, 0, api.ReopenRequest{Why: "not refunded"}); err != nil {
		t.Fatal(err)
	}
	opens(t, cl, "orders.dlq", 3)
	if _, err := cl.ReopenLetter(t.Context(), "orders.dlq", 1, 0, api.ReopenRequest{Why: "x"}); !client.IsProblem(err, api.NotOpen) {
		t.Errorf("a letter that is open: %v", err)
	}
	for of, at := range []int32{2, 5} {
		sent := dlq.Entry{State: dlq.Redriven, Run: "r7", At: time.Now(), By: "ann", Target: headers.Position{Topic: "orders", Partition: at, Offset: 9}}
		if err := c.Client.ProduceSync(t.Context(), sent.Record("orders.dlq.ledger", int32(of), 0)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	opens(t, cl, "orders.dlq", 1)
	_, err := cl.ReopenLetter(t.Context(), "orders.dlq", 0, 0, api.ReopenRequest{Why: "it shrank"})
	if !client.IsProblem(err, api.NotOpen) || !strings.Contains(err.Error(), "a consumer can have its copy orders/2/9") {
		t.Errorf("a copy that waits: %v", err)
	}
	ann := &person{t: t, s: s} // a server without access control
	const letter = "/topics/orders.dlq/letters/1/0"
	ann.opens(letter, "outcome pending", "orders, partition 5, offset 9", "Reopen…")
	ann.confirms(letter+"/reopen", map[string]string{"why": "it shrank"})
	ann.opens(letter, "open again", "it shrank", "Redrive…")
	opens(t, cl, "orders.dlq", 2)
}

package serve_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// The brokers refuse a part of the entries of a discard. The answer says how many letters were
// discarded, the ledger has these and no others, and a discard of what is left ends it. The same
// request again does nothing: its number is wrong now.
func TestServer_DiscardThatFailsMidwayCanBeFinished(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	c.fail("orders", "decode", 9) // three on each partition
	opens(t, cl, "orders.dlq", 9)
	states := func() (open, discarded int64) {
		t.Helper()
		is, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return is.Open, is.Resolved
	}
	// refuse makes the broker refuse the entries about letters of some partitions.
	refuse := func(err *kerr.Error, partitions ...int32) *kfake.FaultHandle {
		return c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Partitions: partitions, Err: err, Count: -1})
	}
	request := api.BulkDiscardRequest{Expect: 9, DiscardRequest: api.DiscardRequest{Why: "sold out"}}
	fault := refuse(kerr.InvalidRecord, 0, 1, 2)
	if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.Kafka) || strings.Contains(err.Error(), "were discarded") {
		t.Errorf("a discard of which nothing is written: %v", err)
	}
	if open, discarded := states(); open != 9 || discarded != 0 {
		t.Errorf("%d letters are open and %d discarded", open, discarded)
	}
	fault.Remove()
	fault = refuse(kerr.InvalidRecord, 0, 1)
	if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.Kafka) || !strings.Contains(err.Error(), "3 of 9 letters were discarded before the error; look at those that are still open, and discard them again: ") {
		t.Errorf("a discard of which a part is written: %v", err)
	}
	fault.Remove()
	// the counts are right at once
	if is, err := cl.Topic(t.Context(), "orders.dlq"); err != nil || is.Open != 6 || is.Resolved != 3 {
		t.Errorf("the topic is %+v, %v", is, err)
	}
	if open, discarded := states(); open != 6 || discarded != 3 {
		t.Errorf("%d letters are open and %d discarded", open, discarded)
	}
	if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.WrongNumber) {
		t.Errorf("the same request again: %v", err)
	}
	// the same on the console, where a permission was taken away
	ann := &person{t: t, s: s}
	fault = refuse(kerr.TopicAuthorizationFailed, 0)
	action, fields := ann.fills(ann.opens("/topics/orders.dlq/discard", "Discards 6 letters"), map[string]string{"why": "sold out", "expect": "6"})
	if w, text := ann.do(http.MethodPost, action, fields); w.Code != http.StatusBadGateway || !strings.Contains(text, "3 of 6 letters were discarded before the error") {
		t.Errorf("the page says %d: %s", w.Code, text)
	}
	fault.Remove()
	ann.opens("/audit?topic=orders.dlq", "local discarded 6 orders.dlq sold out")
	ann.confirms("/topics/orders.dlq/discard?"+url.Values{"class": {"decode"}}.Encode(), map[string]string{"why": "sold out", "expect": "3"})
	if open, discarded := states(); open != 0 || discarded != 9 {
		t.Errorf("%d letters are open and %d discarded", open, discarded)
	}
	page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{State: []string{"discarded"}}, "", 0)
	if err != nil || len(page.Letters) != 9 {
		t.Fatalf("%d letters, %v", len(page.Letters), err)
	}
	for _, l := range page.Letters {
		if is, err := cl.Letter(t.Context(), "orders.dlq", l.Partition, l.Offset); err != nil || len(is.Ledger) != 1 || is.Ledger[0].Why != "sold out" {
			t.Errorf("letter %d/%d: %+v, %v", l.Partition, l.Offset, is.Ledger, err)
		}
	}
}

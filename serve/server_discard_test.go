package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// A discard of many letters says how many. With another number nothing changes.
func TestServer_DiscardsTheExpectedNumberOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{})
	c.fail("orders", "decode", 5)
	c.fail("orders", "http.503", 2)
	opens(t, cl, "orders.dlq", 7)
	request := api.BulkDiscardRequest{Filter: api.Filter{Class: []string{"decode"}}, Expect: 4, DiscardRequest: api.DiscardRequest{Why: "sold out"}}
	if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.WrongNumber) {
		t.Errorf("4 of 5 letters: %v", err)
	}
	request.Expect = 0
	if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.InvalidRequest) {
		t.Errorf("without a number: %v", err)
	}
	opens(t, cl, "orders.dlq", 7)
	request.Expect = 5
	if got, err := cl.Discard(t.Context(), "orders.dlq", request); err != nil || got.Letters != 5 {
		t.Errorf("5 of 5 letters: %v, %v", got, err)
	}
	if is, err := cl.Topic(t.Context(), "orders.dlq"); err != nil || is.Open != 2 || is.Resolved != 5 {
		t.Errorf("the topic is %+v, %v", is, err)
	}
	page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{State: []string{"discarded"}}, "", 0)
	if err != nil || len(page.Letters) != 5 {
		t.Fatalf("the discarded letters are %+v, %v", page, err)
	}
	l, err := cl.Letter(t.Context(), "orders.dlq", page.Letters[0].Partition, page.Letters[0].Offset)
	if err != nil || len(l.Ledger) != 1 || l.Ledger[0].By != "local" || l.Ledger[0].Why != "sold out" {
		t.Errorf("the letter is %+v, %v", l, err)
	}
}

func TestServer_DiscardsALetterAndReopensIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{})
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
}

// A letter that waited in a partition that its source lost was pending for ever.
func TestServer_ReopensAPendingLetterWhoseCopyNobodyCanHave(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	c.fail("orders", "decode", 3) // one on each partition
	for of, at := range []int32{2, 5} {
		sent := dlq.Entry{State: dlq.Redriven, Run: "r7", At: time.Now(), By: "ann", Target: headers.Position{Topic: "orders", Partition: at, Offset: 9}}
		if err := c.cl.ProduceSync(t.Context(), sent.Record("orders.dlq.ledger", int32(of), 0)).FirstErr(); err != nil {
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

// A partition of 33 bits lost its highest ones: the request acted on another letter than its
// address named.
func TestServer_ActsOnNoOtherPartitionThanTheAddressNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	c.fail("orders", "decode", 3) // one on each partition
	opens(t, cl, "orders.dlq", 3)
	const letter = "/api/v1/topics/orders.dlq/letters/4294967297/0" // 2^32 + 1
	for _, test := range []struct{ method, act, body string }{
		{http.MethodGet, "", ""},
		{http.MethodPost, "/discard", `{"why":"sold out"}`},
		{http.MethodPost, "/reopen", `{"why":"sold out"}`},
		{http.MethodPost, "/redrive", "{}"},
	} {
		if got, want := detailOf(t, send(t, s, test.method, letter+test.act, test.body)), "path.partition: at most 2147483647"; got != want {
			t.Errorf("%s %s: %s, want %s", test.method, test.act, got, want)
		}
	}
	if l, err := cl.Letter(t.Context(), "orders.dlq", 1, 0); err != nil || l.State != "" {
		t.Errorf("letter 1/0 is %+v, %v", l, err)
	}
}

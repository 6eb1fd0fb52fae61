package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// The schema counts characters, and ledgers count bytes: a reason of 2,049 é was answered as a
// fault of Kafka. A reason of spaces was taken for one.
func TestServer_IsRefusedWhenNothingWasDone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{RulesFile: rules(t, "rules: [{name: outage, topics: 'orders*', classes: [http.*]}]")})
	cl := c.clientOf(s, "")
	c.fail("orders", "decode", 3) // one on each partition
	opens(t, cl, "orders.dlq", 3)
	tooLong, none := strings.Repeat("é", 2049), " \n "
	const long, missing = "why: the reason has 4098 bytes, and 4096 are the most: nothing was done; name a ticket", "why: the reason is missing: nothing was done; ledgers record it"
	for _, test := range []struct{ path, body, want string }{
		{"/letters/0/0/discard", `{"why":%q}`, missing},
		{"/letters/0/0/reopen", `{"why":%q}`, missing},
		{"/discard", `{"expect":3,"why":%q}`, missing},
		{"/plan", `{"why":%q}`, ""},
		{"/runs", `{"why":%q}`, ""},
		{"/letters/0/0/redrive", `{"why":%q}`, ""},
		{"/runs/01/abort", `{"why":%q}`, ""},
		{"/api/v1/rules/outage/topics/orders.dlq/pause", `{"why":%q}`, ""},
		{"/api/v1/rules/outage/topics/orders.dlq/resume", `{"why":%q}`, ""},
	} {
		path := "/api/v1/topics/orders.dlq" + test.path
		if strings.HasPrefix(test.path, "/api") {
			path = test.path
		}
		if got := detailOf(t, send(t, s, http.MethodPost, path, fmt.Sprintf(test.body, tooLong))); got != long {
			t.Errorf("%s with 4,098 bytes: %s, want %s", path, got, long)
		}
		if test.want == "" {
			continue
		}
		if got := detailOf(t, send(t, s, http.MethodPost, path, fmt.Sprintf(test.body, none))); got != test.want {
			t.Errorf("%s with spaces: %s, want %s", path, got, test.want)
		}
	}
	opens(t, cl, "orders.dlq", 3)
	most := strings.Repeat("é", 2048)
	if _, err := cl.DiscardLetter(t.Context(), "orders.dlq", 0, 0, api.DiscardRequest{Why: " " + most + "\n"}); err != nil {
		t.Fatal(err)
	}
	if l, err := cl.Letter(t.Context(), "orders.dlq", 0, 0); err != nil || len(l.Ledger) != 1 || l.Ledger[0].Why != most {
		t.Errorf("the letter is %+v, %v", l, err)
	}
}

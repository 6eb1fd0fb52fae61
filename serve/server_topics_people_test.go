package serve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Whoever gets a message knows whose topic it is and where to read what to do; so does whoever
// looks at the topic or a letter of it.
func TestServer_SaysWhoOwnsATopicAndWhatToDo(t *testing.T) {
	c := newCluster(t, "orders")
	h := newHook(t)
	t.Setenv("HOOK", "generic+"+h.URL+"?template=json")
	const runbook = "https://wiki.example.com/orders?step=1&of=2"
	s, _ := c.run(serve.Config{
		Topics: []serve.Topic{{
			Match: "orders*", Owner: "team billing", Runbook: runbook, Note: "call ops first",
			Alerts: serve.Thresholds{WarnOpen: 1, New: -1, Oldest: -1, NewClass: -1, Retention: -1},
		}},
		Notify: []serve.Receiver{{Name: "hook", URLEnv: "HOOK"}},
	})
	c.fail("orders", "decode", 1)
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 1)
	topic, err := cl.Topic(t.Context(), "orders.dlq")
	if err != nil || topic.Owner != "team billing" || topic.Runbook != runbook || topic.Note != "call ops first" {
		t.Errorf("the topic is %+v, %v", topic, err)
	}
	words(t, s, "/topics/orders.dlq", "team billing", "Runbook", "call ops first")
	page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{}, "", 0)
	if err != nil || len(page.Letters) != 1 {
		t.Fatalf("the letters are %+v, %v", page, err)
	}
	of := fmt.Sprintf("/topics/orders.dlq/letters/%d/%d", page.Letters[0].Partition, page.Letters[0].Offset)
	words(t, s, of, "team billing", "Runbook", "call ops first")
	select {
	case m := <-h.got:
		if want := "\nowner: team billing\nnote: call ops first\nrunbook: " + runbook + "\nhttp://"; !strings.Contains(m, want) {
			t.Errorf("the message %q lacks %q", m, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
	}
}

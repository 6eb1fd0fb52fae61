package serve_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// A server was suspended, and another one owned its topic meanwhile and notified of an incident.
// The first one wakes, takes itself for the owner until its group says otherwise, and notifies no
// receiver again.
func TestServer_TellsNothingThatAnotherServerTold(t *testing.T) {
	c := newCluster(t, "orders")
	h := newHook(t)
	t.Setenv("HOOK", "generic+"+h.URL+"?template=json")
	s, _ := c.run(serve.Config{
		Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 1, PageOpen: 5, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}},
		Notify: []serve.Receiver{{Name: "hook", URLEnv: "HOOK"}},
	})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	c.fail("orders", "decode", 1)
	h.next(t, "[warn] orders.dlq: ", "")
	c.noted("orders", "serve/alert/open", `"toldTo":["hook"]`)
	// The other server's note comes before the letters that the first one finds as it wakes.
	note, err := json.Marshal(map[string]any{"v": 1, "severity": "page", "text": "9 letters open", "since": time.Now(), "changed": time.Now(), "told": true, "by": "another"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cl.ProduceSync(t.Context(), dlq.RunRecord("orders.dlq.ledger", "serve/alert/open", note)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	// A round may have read the ledger before the note, and letters after it; not the next one.
	for open := 2; open <= 3; open++ {
		c.fail("orders", "decode", 1)
		shows(t, s, fmt.Sprintf(`siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} %d`, open))
	}
	c.fail("orders", "decode", 6)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 9`)
	select {
	case m := <-h.got:
		t.Errorf("sent again: %q", m)
	case <-time.After(3 * time.Second):
	}
}

package forward

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Forgetting fails what is on its way, which may be there twice then. So a late refusal from before
// must not lead to it again.
func TestStaleTopicIDs_ForgetOnceForEachRecreation(t *testing.T) {
	t.Parallel()
	cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	r := &staleTopicIDs{client: cl}
	renewed := func() bool {
		before := r.generation.Load()
		r.purge("orders.dlq")
		return r.generation.Load() > before
	}
	if renewed() {
		t.Error("forgotten without a reason")
	}
	first := r.generation.Load()
	for range 3 {
		r.mark("orders.dlq", first) // all that kgo had is refused
	}
	if !renewed() {
		t.Error("not forgotten after a refusal")
	}
	if renewed() {
		t.Error("forgotten again for the same refusals")
	}
	r.mark("orders.dlq", first) // of a copy that was handed over before
	if renewed() {
		t.Error("forgotten for a refusal from before")
	}
	r.mark("orders.retry.5s", first) // of another topic
	if renewed() {
		t.Error("forgotten for another topic's refusal")
	}
	r.mu.Lock()
	r.purging["orders.dlq"] = true
	r.mu.Unlock()
	r.mark("orders.dlq", r.generation.Load()) // while kgo forgets
	r.mu.Lock()
	delete(r.purging, "orders.dlq")
	r.mu.Unlock()
	if renewed() {
		t.Error("forgotten for a refusal from meanwhile")
	}
	r.mark("orders.dlq", r.generation.Load())
	if !renewed() {
		t.Error("not forgotten when it was recreated once more")
	}
}

package serve_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
)

// The dead-letter topic lost its end in an unclean election, and new letters stand at the offsets
// of letters that came home. They had the entries of those, so no list of open letters had them.
func TestServer_LettersAtLostOffsetsAreOpen(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, soon)}, old)
		is.within(10*time.Minute, "all letters came home", func() bool { return is.done.Load() == 3 })
		is.within(10*time.Minute, "the run is done", func() bool {
			now := is.known()
			return now.Open == 0 && now.Pending == 0 && now.Run == ""
		})
		k.DeleteTopic("orders.dlq")
		k.CreateTopic("orders.dlq", 1)
		// a new leader epoch
		if err := k.Cluster.MoveTopicPartition("orders.dlq", 0, 0); err != nil {
			t.Fatal(err)
		}
		is.letterOf("bug", time.Now()) // no rule is about it
		is.letterOf("bug", time.Now())
		time.Sleep(time.Minute)
		if now := is.known(); now.Open != 2 || now.Resolved != 0 {
			t.Errorf("%d letters are open and %d resolved, want 2 and none", now.Open, now.Resolved)
		}
	})
}

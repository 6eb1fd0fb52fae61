package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The strict proof of a run's rate is in virtual time (redrive/pace_test.go), without other load.
// Here the run is held to the most that a token bucket lets through, also on a busy machine. The
// times are those at which the program produced its records, on a topic that
// keeps them: a broker's own times would include its pauses.
func TestTheProgramKeepsItsRate(t *testing.T) {
	t.Parallel()
	binary(t)
	const span, letters = 6 * time.Second, 7 // seconds' worth
	for _, rate := range []int{50, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			s := onKafka(t)
			topic := topicName(t)
			s.CreateTopic(topic, 2)
			s.CreateTopic(topic+"-fixed", 2)
			s.deploy(topic, topic, time.Second)
			s.incident(topic, "order", letters*rate)
			s.begin("run", topic+".dlq", "--yes", "--target", topic+"-fixed", "--rate", fmt.Sprint(rate), "--canary", "0", "--ramp", "0", "--window", "0", "--max-lag", "-1").ends(0)

			var sent []time.Time
			for _, found := range s.returned(topic+"-fixed", kgo.ReadCommitted()) {
				for _, r := range found {
					sent = append(sent, r.Timestamp)
				}
			}
			slices.SortFunc(sent, time.Time.Compare)
			if len(sent) != letters*rate {
				t.Fatalf("%d letters were sent, want %d", len(sent), letters*rate)
			}
			burst, within := rate/10, 0
			for i, at := range sent {
				if at.Sub(sent[0]) < span {
					within++
				}
				// A timestamp is off by up to a millisecond, and so is each end of a second.
				if j := i + rate + burst + 2*rate/1000 + 1; j < len(sent) && sent[j].Sub(at) < time.Second {
					t.Fatalf("records %d to %d were sent within %v", i, j, sent[j].Sub(at))
				}
			}
			most := float64(rate) * span.Seconds()
			if float64(within) > 1.01*most+float64(burst) {
				t.Errorf("%d were sent in %v, want %.0f at most", within, span, most)
			}
		})
	}
}

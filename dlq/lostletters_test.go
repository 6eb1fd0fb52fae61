package dlq

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Without a ledger no Read noticed that a partition had got a new leader.
func TestLostLetters_AreFoundWithoutALedger(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		old := kgo.MaxVersions(kversion.V2_7_0()) // without ids of topics
		k.create(t, "none.dlq", 1)
		k.fill(t, "none.dlq", 0, 2)
		l := NewLedger("none.dlq", "none.dlq.ledger", k.opts(old)...)
		read(t, l)
		if err := k.MoveTopicPartition("none.dlq", 0, 0); err != nil { // a new leader epoch
			t.Fatal(err)
		}
		k.fill(t, "none.dlq", 0, 1)
		read(t, l)
		if cut := l.TakeCut(0); cut != 2 {
			t.Errorf("letters may be others from %d on, want 2", cut)
		}
		// a broker with stale metadata takes nothing back
		l.lost.found(nil)
		l.lost.checked[0], l.lost.now[0] = 2, 2
		if todo := l.lost.todo(l.states); len(todo) != 0 || l.TakeCut(0) != math.MaxInt64 {
			t.Errorf("the ends of %v are asked", todo)
		}
	})
}

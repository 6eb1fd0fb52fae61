package consumer_test

import (
	"fmt"
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// Random histories of records that kill, hang, fail and take long, of processes that die by
// accident, and of groups that change: every record ends where its script says, and only those that
// kill are taken for such. SIDING_SEED=7
// plays one again.
func TestIsolator_RandomHistories(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(16) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) { newHistory(t, k, seed).play() })
		})
	}
}

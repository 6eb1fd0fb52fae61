package consumer_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Random histories of records that kill, hang, fail and take long, of processes that die by
// accident, and of groups that change: every record ends where its script says, and only those that
// kill are taken for such. SIDING_SEED replays one seed, SIDING_SEEDS plays more of them.
func TestIsolator_RandomHistories(t *testing.T) {
	t.Parallel()
	first, seeds := uint64(0), uint64(16)
	if n, err := strconv.ParseUint(os.Getenv("SIDING_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SIDING_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) { newHistory(t, k, seed).play() })
		})
	}
}

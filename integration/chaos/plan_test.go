package chaos

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
)

// The seed that a run prints plays the same schedule again.
func TestPlan_IsTheSeeds(t *testing.T) {
	t.Parallel()
	const all = brokers.CanProxy | brokers.CanAnswer | brokers.CanRefuse | brokers.CanEnd | brokers.CanFreeze | brokers.CanRestart | brokers.CanDeny
	of := func(seed uint64) string {
		return newPlan(Config{Seed: seed, Duration: 10 * time.Minute}.withDefaults(), possible(all)).String()
	}
	if first, again := of(7), of(7); first != again {
		t.Errorf("one seed has two schedules:\n%s\n%s", first, again)
	}
	if of(7) == of(8) {
		t.Error("two seeds have one schedule")
	}
}

// Each fault comes before any comes again, so a run of two minutes has all of them.
func TestPlan_HasEachFault(t *testing.T) {
	t.Parallel()
	for _, can := range []brokers.Capability{0, brokers.CanProxy | brokers.CanRefuse | brokers.CanEnd | brokers.CanFreeze | brokers.CanDeny, brokers.CanProxy | brokers.CanAnswer | brokers.CanRefuse | brokers.CanEnd | brokers.CanFreeze | brokers.CanRestart | brokers.CanDeny} {
		want := map[string]bool{}
		for _, k := range faultKinds {
			want[k.name] = k.needs&^can == 0
		}
		got := map[string]bool{}
		for _, s := range newPlan(Config{Seed: 1, Duration: 2 * time.Minute}.withDefaults(), possible(can)).steps {
			got[s.fault] = true
		}
		for name, possible := range want {
			if got[name] != possible {
				t.Errorf("capabilities %b: fault %s is in the plan: %v, want %v", can, name, got[name], possible)
			}
		}
	}
}

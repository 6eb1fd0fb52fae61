package suite

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// restart: the configuration changes while records are in flight.
var restart = map[string]func(*testing.T, *fixture){
	// Trap 14: fewer attempts or tiers in the new configuration than records in flight assume.
	"a restart with fewer attempts ends the records in flight": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.MaxAttempts = 50
		records := f.inFlight(t, cfg, tier2)
		cfg.Policy.MaxAttempts = 2
		f.Run(cfg)
		for _, r := range records {
			if m := f.DeadLettered(r, headers.ReasonExhausted); m.Attempts < 2 {
				t.Errorf("exhausted after %d attempts, want 2 at least", m.Attempts)
			}
		}
		f.Conserved()
	},
	"a restart with more tiers takes records in flight along": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{tier2}
		records := f.inFlight(t, cfg, tier2)
		// One tier before the one that holds them, and one after it.
		cfg.Policy.Tiers = []time.Duration{tier1, tier2, 2 * tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		if m := f.Parked(records[7], 2*tier2, ""); m.Attempts != 2 {
			t.Errorf("the tier behind was reached after %d attempts, want 2: records in flight go on, not back", m.Attempts)
		}
		f.Conserved()
	},
	"a restart from tiers in another order of delays loses nothing": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		records := f.inFlight(t, cfg, tier1)
		cfg.Policy.Tiers = []time.Duration{tier1 / 2, tier1, tier1 * 2, tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		f.Conserved()
	},
}

// inFlight runs a consumer until one record of 20, the eighth, is in the tier.
func (f *fixture) inFlight(t *testing.T, cfg consumer.Config, tier time.Duration) []*kgo.Record {
	t.Helper()
	c := f.Run(cfg)
	records := f.Produce(f.many(20)...)
	f.Parked(records[7], tier, "")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	return records
}

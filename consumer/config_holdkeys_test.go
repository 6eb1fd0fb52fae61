package consumer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// All that speaks against holding keys is in one error. What a policy lets wait is bounded, since
// nothing is committed past it; so is what handlers ask for.
func TestConfig_RefusesWhatCannotHoldKeys(t *testing.T) {
	t.Parallel()
	good := func() Config {
		return Config{
			Group: "billing", Topics: []string{"orders", "refunds"}, Kafka: []kgo.Opt{kgo.SeedBrokers("localhost:1")}, HoldKeys: true,
			Handler: func(context.Context, *kgo.Record) error { return nil },
		}
	}
	c, err := New(good())
	if err != nil {
		t.Fatal(err)
	}
	if p := c.policies["orders"]; p.MaxRetryAfter != 15*time.Minute || c.cfg.MaxHeld != 10_000 {
		t.Errorf("handlers may ask for %v, and %d records wait; want 15m0s, and 10000", p.MaxRetryAfter, c.cfg.MaxHeld)
	}
	for name, tt := range map[string]struct {
		edit func(*Config)
		want []string
	}{
		"without an order": {func(c *Config) { c.Order = OrderNone }, []string{"Order is OrderNone"}},
		"without tiers":    {func(c *Config) { c.Policies = map[string]Policy{"refunds": {Tiers: []time.Duration{}}} }, []string{`the policy of "refunds" has no Tiers`}},
		"long waits": {func(c *Config) {
			c.Policy.Tiers = []time.Duration{time.Minute, 10 * time.Minute}
			c.Policy.MaxAttempts = 4
		}, []string{`by the policy of "orders"`, `by the policy of "refunds"`, "wait for up to 23m6s in all", "MaxHold, which is 15m0s"}},
		"many at once": {func(c *Config) { c.Order, c.MaxHold, c.MaxHeld, c.Followers = OrderNone, -1, -1, 7 }, []string{
			"MaxHold must be positive", "MaxHeld must be positive", "Followers is Followers(7)", "Order is OrderNone",
		}},
		"followers of nothing": {func(c *Config) { c.HoldKeys, c.Followers = false, FollowHead }, []string{"HoldKeys is not set"}},
	} {
		cfg := good()
		tt.edit(&cfg)
		_, err := New(cfg)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want it to say %q", name, err, want)
			}
		}
	}
	longer := good()
	longer.Policy.Tiers, longer.MaxHold = []time.Duration{time.Hour}, 2*time.Hour
	if _, err := New(longer); err != nil {
		t.Errorf("with a longer MaxHold: %v", err)
	}
}

package consumer

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/retrytopics"
)

// A record goes one tier up with each failure, and stays on the last.
func TestNext_GoesOneTierUpAndStaysOnTheLast(t *testing.T) {
	t.Parallel()
	s := siblingsFor(t, retrytopics.Default...)
	source, first, second, last := retrytopics.Tier{}, s.Tiers[0], s.Tiers[1], s.Tiers[2]
	for _, c := range []struct {
		from    retrytopics.Tier
		atLeast time.Duration
		want    retrytopics.Tier
	}{
		{source, 0, first},
		{first, 0, second},
		{second, 0, last},
		{last, 0, last},
		{source, 5 * time.Second, first},
		{source, 6 * time.Second, second},
		{source, time.Hour, last},
		{second, 6 * time.Second, last},
		{last, time.Hour, last},
		{source, -time.Second, first},
		// Tiers that left the configuration.
		{retrytopics.Tier{Delay: 10 * time.Second, Topic: "orders.retry.10s"}, 0, second},
		{retrytopics.Tier{Delay: 10 * time.Second, Topic: "orders.retry.10s"}, time.Minute, last},
		{retrytopics.Tier{Delay: first.Delay, Topic: "orders.former.5s"}, 0, second},
	} {
		if got := next(s, c.from, c.atLeast); got != c.want {
			t.Errorf("next(%v, %s) = %v, want %v", c.from, c.atLeast, got, c.want)
		}
	}
	if got := next(siblingsFor(t), source, time.Second); got != (retrytopics.Tier{}) {
		t.Errorf("next with no tiers = %v, want none", got)
	}
}

// The next wait is never shorter than the last, whatever tiers were configured meanwhile.
func TestNext_NeverGoesDown(t *testing.T) {
	t.Parallel()
	s := siblingsFor(t, retrytopics.Cautious...)
	last := s.Tiers[len(s.Tiers)-1]
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(s.Tiers).Draw(t, "from")
		atLeast := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "atLeast"))
		got := next(s, from, atLeast)
		if got.Delay <= from.Delay && got != last {
			t.Errorf("next(%s, %s) = %s", from.Topic, atLeast, got.Topic)
		}
		if got.Delay < atLeast && got != last {
			t.Errorf("next(%s, %s) = %s: too short", from.Topic, atLeast, got.Topic)
		}
	})
}

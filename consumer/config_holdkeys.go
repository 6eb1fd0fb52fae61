package consumer

import (
	"fmt"
	"slices"
	"time"
)

// Followers says what becomes of the records that wait behind one which is dead-lettered, see
// [Config.HoldKeys].
type Followers uint8

const (
	// ReleaseFollowers runs them, in order, once the letter is safe. The default.
	ReleaseFollowers Followers = iota
	// FollowHead dead-letters those read so far, too, in order: reason held, with the class and the
	// fingerprint of the record in front. All are finished together.
	FollowHead
)

// The defaults of MaxHold and MaxHeld.
const (
	defaultMaxHold = 15 * time.Minute
	defaultMaxHeld = 10_000
)

// holdProblems lists what speaks against HoldKeys.
func (cfg Config) holdProblems() (all []error) {
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if cfg.Followers > FollowHead {
		add("Followers is Followers(%d): ReleaseFollowers or FollowHead", cfg.Followers)
	}
	if cfg.MaxHold <= 0 {
		add("MaxHold must be positive, or zero for the default")
	}
	if cfg.MaxHeld <= 0 {
		add("MaxHeld must be positive, or zero for the default")
	}
	if !cfg.HoldKeys {
		if cfg.Followers != ReleaseFollowers {
			add("Followers is FollowHead, but HoldKeys is not set: no record waits behind another one")
		}
		return all
	}
	if cfg.Order == OrderNone {
		add("HoldKeys keeps the order of a key, and Order is OrderNone: OrderKey or OrderPartition")
	}
	for _, t := range slices.Compact(slices.Sorted(slices.Values(cfg.Topics))) {
		p := cfg.policyOf(t)
		if len(p.Tiers) == 0 {
			add("HoldKeys: the policy of %q has no Tiers, so no record waits for another attempt", t)
			continue
		}
		if waits := p.RetryTime(); waits > cfg.MaxHold {
			add("HoldKeys: by the policy of %q a record and its key wait for up to %v in all, and nothing is committed past it for as long: "+
				"shorten Tiers, lower MaxAttempts, or raise MaxHold, which is %v", t, waits, cfg.MaxHold)
		}
	}
	return all
}

package consumer

import (
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

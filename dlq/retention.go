package dlq

import (
	"errors"
	"fmt"
	"time"
)

// Retention says for how long a dead-letter topic keeps its letters, and how many. The stricter of
// the two limits counts, and the oldest letters go first. A letter's age is that of its record's
// timestamp: when it entered the topic, not when it failed. At least one limit is required.
//
// Kafka deletes from the beginning of a partition only. So a letter that stays keeps all letters
// behind it, however old they are and however many: [Prunable.Held] has their number.
type Retention struct {
	// MaxAge is for how long a letter stays. Zero sets no limit.
	MaxAge time.Duration
	// MaxCount is how many letters stay, in all partitions together: the newest ones. All letters
	// count, resolved and open ones and duplicates. Letters of the same time are ordered by
	// partition and offset. Zero sets no limit.
	MaxCount int64
	// Open makes the limits count for letters that are open or have no outcome, too. By default
	// such letters stay.
	Open bool
}

func (r *Retention) check() error {
	switch {
	case r.MaxAge < 0 || r.MaxCount < 0:
		return fmt.Errorf("max-age %v and max-count %d: a limit is above 0, and 0 sets none", r.MaxAge, r.MaxCount)
	case r.MaxAge == 0 && r.MaxCount == 0:
		return errors.New("neither max-age nor max-count is set: at least one of them is required")
	}
	return nil
}

package consumer

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchErrors holds why a partition cannot be read, for example a revoked permission or a broken
// batch. kgo fetches again and again, and reports each refusal.
type fetchErrors struct {
	err         error
	first, last time.Time
}

// fetchErrorsFor is how long a refusal counts. Nothing reports its end: an idle partition returns
// no records either.
const fetchErrorsFor = time.Minute

func (u *fetchErrors) add(err error, now time.Time) {
	if now.Sub(u.last) > fetchErrorsFor {
		u.first = now
	}
	u.err, u.last = err, now
}

// trouble returns why the partition cannot be read, and since when. It returns nil unless refusals
// have lasted for blockedAfter, and the last one is recent.
func (u *fetchErrors) trouble(now time.Time) (since time.Time, err error) {
	var tooLarge *kgo.ErrDecompressTooLarge
	lasting := u.last.Sub(u.first) >= blockedAfter && now.Sub(u.last) <= fetchErrorsFor
	// kgo reports ErrDecompressTooLarge once, and then stops reading the partition.
	if lasting || errors.As(u.err, &tooLarge) {
		return u.first, u.err
	}
	return time.Time{}, nil
}

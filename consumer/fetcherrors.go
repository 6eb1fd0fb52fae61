package consumer

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchErrors is what stands in the way of reading a partition: rights that were taken away, a
// batch that is broken. kgo asks again and again, and says each time that it was refused.
type fetchErrors struct {
	err         error
	first, last time.Time
}

// fetchErrorsFor is how long a refusal counts. There is no other sign that it is over: an idle
// partition gives nothing either.
const fetchErrorsFor = time.Minute

func (u *fetchErrors) add(err error, now time.Time) {
	if now.Sub(u.last) > fetchErrorsFor {
		u.first = now
	}
	u.err, u.last = err, now
}

// trouble returns why the partition cannot be read, and since when: nil unless it has been refused
// for some time, and lately.
func (u *fetchErrors) trouble(now time.Time) (since time.Time, err error) {
	var tooLarge *kgo.ErrDecompressTooLarge
	lasting := u.last.Sub(u.first) >= blockedAfter && now.Sub(u.last) <= fetchErrorsFor
	// which kgo says once, and reads the partition no more
	if lasting || errors.As(u.err, &tooLarge) {
		return u.first, u.err
	}
	return time.Time{}, nil
}

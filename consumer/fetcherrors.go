package consumer

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// fetchErrors holds why a partition cannot be read, for example a revoked permission or a broken
// batch. kgo would fetch again at once, and be refused thousands of times a second. So the fetch is
// paused after each refusal.
type fetchErrors struct {
	err         error
	first, last time.Time
	n           int       // refusals since first
	until       time.Time // when the pause ends
}

const (
	// fetchErrorsFor is how long a refusal counts. Only records report its end: an idle partition
	// returns none.
	fetchErrorsFor = time.Minute
	// maxFetchWait bounds the pause after a refusal.
	maxFetchWait = 15 * time.Second
)

// add adds a refusal, and returns how long to pause the fetch.
func (u *fetchErrors) add(err error, now time.Time) time.Duration {
	if now.Sub(u.last) > fetchErrorsFor {
		u.first, u.n = now, 0
	}
	u.n++
	wait := backoff.Of(u.n, time.Second, maxFetchWait)
	u.err, u.last, u.until = err, now, now.Add(wait)
	return wait
}

// end registers that records were read.
func (u *fetchErrors) end() {
	if u.n > 0 && !isTooLarge(u.err) {
		*u = fetchErrors{}
	}
}

// trouble returns why the partition cannot be read, and since when. It returns nil unless refusals
// have lasted for after, and the last one is recent.
func (u *fetchErrors) trouble(now time.Time, after time.Duration) (since time.Time, err error) {
	lasted := min(now.Sub(u.first), u.until.Sub(u.first))
	if lasted >= after && now.Sub(u.last) <= fetchErrorsFor || isTooLarge(u.err) {
		return u.first, u.err
	}
	return time.Time{}, nil
}

// isTooLarge reports whether kgo refused a batch for its size. It reports that once, and stops
// reading the partition.
func isTooLarge(err error) bool {
	var tooLarge *kgo.ErrDecompressTooLarge
	return errors.As(err, &tooLarge)
}

// wayOut returns what a user can do about a refused fetch.
func wayOut(err error) string {
	var broker *kerr.Error
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return "grant the consumer READ on the topic"
	case isTooLarge(err):
		return "raise kgo.MaxDecompressBatchBytes in Config.Kafka, and restart"
	case errors.As(err, &broker):
		return "siding asks again every 15 s; the broker's log may tell more"
	}
	return `see "A batch that cannot be read" in docs/operations.md`
}

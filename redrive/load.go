package redrive

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// timeoutMost is the longest timeout of a transaction. It begins with [txn.Timeout], and is doubled
// when one letter takes longer.
const timeoutMost = 5 * time.Minute

const (
	// loadStart is how many bytes the first transaction takes, and the one after an expiry at most:
	// a second at 1 MB/s.
	loadStart = 1 << 20
	// loadLeast keeps small letters from going one by one.
	loadLeast = 8 << 10
	// loadAim is how long the bytes of a transaction may take, beside what an empty one takes.
	loadAim = 150 * time.Millisecond
)

// load bounds a transaction by letters and by bytes. The bytes follow what the connection carries,
// which is not known beforehand: the bound is doubled while the bytes take less than half of
// [loadAim], and cut where they take longer. The time of the bytes is what the copies took less
// what the ledger's entries took. So a broker that is only far away does not look slow.
//
// A load outlives an engine: the next engine of the run continues with what was learned. See
// DESIGN.md, "Sending".
type load struct {
	letters       int
	acceptedInRow int // transactions that were taken since letters changed
	bytes         int64
	max           int64
	timeout       time.Duration // of a transaction, on the broker
	narrow        bool          // the connection has no room for two transactions at once
}

func newLoad(most int64) *load {
	return &load{letters: txnLetters, bytes: min(loadStart, most), max: most, timeout: txn.Timeout, narrow: true}
}

// fits reports whether a transaction has room for a letter; for one it always has.
func (l *load) fits(t *transaction, size int) bool {
	return len(t.copies) == 0 || len(t.copies) < l.letters && t.bytes+int64(size) <= l.bytes
}

// growAfter is how many transactions are taken, one after the other, before the next has twice as
// many letters again: where it is the batches that are too large, and no letter, few are refused in
// vain.
const growAfter = 4

// accepted records that a transaction with letters was committed.
func (l *load) accepted(t *transaction) {
	if l.acceptedInRow++; l.acceptedInRow >= growAfter {
		l.letters, l.acceptedInRow = min(2*l.letters, txnLetters), 0
	}
	l.narrow = t.sending > loadAim || l.narrow && t.sending > loadAim/2
	switch took := t.sending - t.reporting; {
	case took > loadAim:
		cut := float64(min(l.bytes, t.bytes)) * max(0.5, float64(loadAim)/float64(took))
		l.bytes = max(loadLeast, min(l.bytes, int64(cut)))
	case took < loadAim/2 && t.full:
		l.bytes = min(2*l.bytes, l.max)
	}
}

// refused records that a broker refused so many letters of a transaction.
func (l *load) refused(letters int) {
	l.letters, l.acceptedInRow = max(1, min(l.letters, letters/2)), 0
}

// some is how many of the records fit in a transaction, at least one, and their size.
func (l *load) some(records []*kgo.Record) (n int, bytes int64) {
	for n < min(len(records), txnLetters) {
		size := int64(len(records[n].Key) + len(records[n].Value))
		if n > 0 && bytes+size > l.bytes {
			break
		}
		bytes += size
		n++
	}
	return n, bytes
}

// attempt is a transaction that was not committed.
type attempt struct {
	began   time.Time
	records int
	bytes   int64
}

// expiredError means that a transaction took so long that the broker has ended it, or is about to.
// No other process is the cause.
type expiredError struct {
	attempt
	after time.Duration
	next  string
	err   error
}

func (e *expiredError) Error() string {
	return fmt.Sprintf("a transaction of %d records with %d bytes was not committed within %v, and %s: %v", e.records, e.bytes, e.after, e.next, e.err)
}

func (e *expiredError) Unwrap() []error { return []error{txn.ErrUncertain, e.err} }

// overdue finds out whether an attempt failed because it took too long. If so, the next one takes
// less or has longer, and the error says so.
func (l *load) overdue(a attempt, err error) error {
	after := l.timeout
	if time.Since(a.began) < after {
		return err
	}
	l.narrow = true
	next := "the next one has fewer"
	if a.records > 1 {
		l.bytes = max(1, min(l.bytes, a.bytes, 2*loadStart)/2)
	} else {
		l.timeout = min(2*l.timeout, timeoutMost)
		next = fmt.Sprintf("the next one has %v", l.timeout)
	}
	return &expiredError{a, after, next, err}
}

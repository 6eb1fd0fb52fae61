package redrive

// Bounds a transaction by the bytes that the brokers accepted in time.

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// timeoutMost is the longest timeout of a transaction. The timeout starts at [txn.Timeout], and
// doubles when a single letter takes longer.
const timeoutMost = 5 * time.Minute

const (
	// loadStart bounds the bytes of the first transaction, and of the first after an expiry: one
	// second at 1 MB/s.
	loadStart = 1 << 20
	// loadLeast keeps small letters from going one by one.
	loadLeast = 8 << 10
	// loadAim is the time for the bytes of a transaction, beyond the time of an empty one.
	loadAim = 150 * time.Millisecond
)

// load bounds a transaction by letters and by bytes. The speed of the connection is not known
// beforehand. So the bound in bytes doubles while the bytes take less than half of [loadAim], and
// shrinks when they take longer. The time for the bytes is the time for the copies less the time
// for the entries, so that mere distance to the broker does not look slow.
//
// A load outlives an engine, and the next engine of the run continues with it. See DESIGN.md,
// "Sending".
type load struct {
	letters       int
	acceptedInRow int // transactions accepted since letters changed
	bytes         int64
	max           int64
	timeout       time.Duration // of a transaction, on the broker
	narrow        bool          // the connection has no room for two concurrent transactions
	large         bool          // the producers send letters of any size, see [load.enlarge]
}

// enlarge lets the next producers send letters of any size. A transaction of several has no more
// than the client put into a batch before, for what it puts into one is now as large.
func (l *load) enlarge(most int) {
	l.large, l.max = true, min(l.max, int64(most))
	l.bytes = min(l.bytes, l.max)
}

func newLoad(most int64) *load {
	return &load{letters: txnLetters, bytes: min(loadStart, most), max: most, timeout: txn.Timeout, narrow: true}
}

// fits reports whether a transaction has room for a letter; an empty transaction always has. A
// letter that was refused alone goes alone again.
func (l *load) fits(t *transaction, o *outgoing) bool {
	return len(t.copies) == 0 || !o.tight && !t.copies[0].tight && len(t.copies) < l.letters && t.bytes+int64(o.size) <= l.bytes
}

// growAfter is the number of accepted transactions in a row after which letters doubles. It keeps
// refusals rare when the batches are too large and no single letter is.
const growAfter = 4

// accepted records the commit of a transaction with letters.
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

// raised returns the timeout of a transaction if it was raised, and 0 otherwise.
func (l *load) raised() time.Duration {
	if l.timeout == txn.Timeout {
		return 0
	}
	return l.timeout
}

// refused records that a broker refused a transaction with so many letters in refused batches.
func (l *load) refused(letters int) {
	l.letters, l.acceptedInRow = max(1, min(l.letters, letters/2)), 0
}

// some returns how many of the records fit in a transaction, at least one, and their size.
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

// expiredError reports that a transaction took so long that the broker has ended it, or is about
// to. No other process is the cause.
type expiredError struct {
	text string
	err  error
}

func (e *expiredError) Error() string { return e.text }

func (e *expiredError) Unwrap() []error { return []error{txn.ErrUncertain, e.err} }

// overdue wraps err, for which a transaction was not committed, into an *expiredError if the
// transaction took too long. It also shrinks the next transaction or gives it more time.
func (l *load) overdue(began time.Time, records int, bytes int64, err error) error {
	after := l.timeout
	if time.Since(began) < after {
		return err
	}
	l.narrow = true
	next := "the next one has fewer"
	if records > 1 {
		l.bytes = max(1, min(l.bytes, bytes, 2*loadStart)/2)
	} else {
		l.timeout = min(2*l.timeout, timeoutMost)
		next = fmt.Sprintf("the next one has %v", l.timeout)
	}
	return &expiredError{fmt.Sprintf("a transaction of %d records with %d bytes was not committed within %v, and %s: %v", records, bytes, after, next, err), err}
}

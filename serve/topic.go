package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/book"
)

// topic is a dead-letter topic of the cluster.
type topic struct {
	redrive.DeadLetterTopic
	config Topic // what the configuration says of it
	book   *book.Book
	ruled  atomic.Bool // a rule is being applied

	mu        sync.Mutex
	read      position // of the brokers' when the book was last refreshed
	retention time.Duration
	runs      []redrive.Outcome
}

// position is how far a dead-letter topic and its ledger are: the sums of the partitions' offsets.
type position struct{ start, end, ledger int64 }

// refresh brings the book and the runs up to the brokers' position, unless they are there.
func (t *topic) refresh(ctx context.Context, r *redrive.Redriver, at position) error {
	t.mu.Lock()
	before := t.read
	t.mu.Unlock()
	if p := t.book.Progress(); at == before && p.Problem == nil && !p.Complete.IsZero() {
		return nil
	}
	err := t.book.Refresh(ctx)
	var runs []redrive.Outcome
	if at.ledger != before.ledger {
		var runsErr error
		if runs, runsErr = r.Runs(ctx, t.DeadLetterTopic.Topic); err == nil {
			err = runsErr
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.read = at
		if at.ledger != before.ledger {
			t.runs = runs
		}
	}
	return err
}

func (t *topic) setRetention(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retention = d
}

package programs

import (
	"context"
	"sync"
	"time"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// fetch is what each library reads of a partition at a time, at most, and fetchWait for how long a
// broker waits for the first byte: siding's own.
const (
	fetch     = 1 << 20
	fetchWait = 250 * time.Millisecond
)

// commitInterval is that of each library.
const commitInterval = time.Second

// ahead is how many records of a partition wait for its handler, in libraries that hand them on
// singly. They become one batch of dead letters at most.
const ahead = 1_000

// aheadBatches is the same where a partition's records come in batches, as large as a fetch has
// them. So a partition that waits does not hold up the poll loop, and with it the others.
const aheadBatches = 256

// attempt calls the handler for a record as often as the job says, and waits in between: that is
// how a loop by hand retries, and the partition's next record waits meanwhile.
func attempt(ctx context.Context, j work.Job, handle work.Handler, value []byte) error {
	err := handle(ctx, value)
	for _, wait := range j.Waits {
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		err = handle(ctx, value)
	}
	return err
}

// batch waits for an item, and takes what else is there. It is empty if there will be no more.
func batch[T any](ctx context.Context, from <-chan T) (items []T) {
	select {
	case <-ctx.Done():
		return nil
	case item, ok := <-from:
		if !ok {
			return nil
		}
		items = append(items, item)
	}
	for len(items) < ahead {
		select {
		case item, ok := <-from:
			if !ok {
				return items
			}
			items = append(items, item)
		default:
			return items
		}
	}
	return items
}

// lanes has a goroutine for each partition, which does its work with what is put in there.
type lanes[T any] struct {
	depth int // what waits in front of it
	work  func(<-chan T)
	feeds map[int32]chan T
	all   sync.WaitGroup
}

// put reports whether it was put in before the context ended.
func (l *lanes[T]) put(ctx context.Context, partition int32, item T) bool {
	feed := l.feeds[partition]
	if feed == nil {
		if l.feeds == nil {
			l.feeds = map[int32]chan T{}
		}
		feed = make(chan T, l.depth)
		l.feeds[partition] = feed
		l.all.Go(func() { l.work(feed) })
	}
	select {
	case feed <- item:
		return true
	case <-ctx.Done():
		return false
	}
}

// close waits for the work.
func (l *lanes[T]) close() {
	for _, feed := range l.feeds {
		close(feed)
	}
	l.all.Wait()
}

// ended is the error of a program whose context has ended: none if that was asked for.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); err != context.Canceled { //nolint:errorlint // what was asked for is this very value
		return err
	}
	return nil
}

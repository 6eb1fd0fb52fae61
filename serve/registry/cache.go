package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// askEvery is how often the same may be asked for, at most.
	askEvery = time.Minute
	// mostKept is how many answers are kept, and how many are asked for within askEvery.
	mostKept = 1000
	// askTime bounds all requests for one answer.
	askTime = 15 * time.Second
)

// cache keeps answers, and asks for each once at a time. It is safe for concurrent use.
type cache[V any] struct {
	life context.Context // of all that is asked
	now  func() time.Time

	mu    sync.Mutex
	kept  map[string]*entry[V]
	tasks sync.WaitGroup // begun under mu while life lasts
}

// entry is an answer, or one that is awaited.
type entry[V any] struct {
	asked time.Time
	done  chan struct{} // closed when value and err are there
	value V
	err   error
}

func newCache[V any](life context.Context, now func() time.Time) *cache[V] {
	return &cache[V]{life: life, now: now, kept: map[string]*entry[V]{}}
}

// get returns the answer for a key, which ask finds. It outlives the caller who asked first.
func (c *cache[V]) get(ctx context.Context, key string, ask func(context.Context) (V, error)) (V, error) {
	e, err := c.find(key, ask)
	if err != nil {
		return *new(V), err
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		return *new(V), ctx.Err()
	}
}

// find returns the entry of a key, and begins to ask for its answer if there is none.
func (c *cache[V]) find(key string, ask func(context.Context) (V, error)) (*entry[V], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.life.Err(); err != nil {
		return nil, err
	}
	now := c.now()
	if e := c.kept[key]; e != nil && (e.good() || now.Sub(e.asked) < askEvery) {
		return e, nil
	}
	if len(c.kept) >= mostKept && !c.drop(now) {
		return nil, fmt.Errorf("more than %d schemas were asked for within %v", mostKept, askEvery)
	}
	e := &entry[V]{asked: now, done: make(chan struct{})}
	c.kept[key] = e
	c.tasks.Go(func() { c.fill(key, e, ask) })
	return e, nil
}

func (c *cache[V]) fill(key string, e *entry[V], ask func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(c.life, askTime)
	defer cancel()
	defer close(e.done)
	e.err = guarded(func() (err error) {
		e.value, err = ask(ctx)
		return err
	})
	if _, ok := errors.AsType[*pausedError](e.err); ok {
		c.mu.Lock()
		delete(c.kept, key)
		c.mu.Unlock()
	}
}

// wait returns when nothing is asked any more. The cache's life has to have ended.
func (c *cache[V]) wait() {
	c.mu.Lock()
	c.mu.Unlock() //nolint:staticcheck // whoever has seen it alive has begun its task
	c.tasks.Wait()
}

// good says whether the answer is there, and no error.
func (e *entry[V]) good() bool {
	select {
	case <-e.done:
		return e.err == nil
	default:
		return false
	}
}

// drop forgets the oldest answer, unless that could make somebody ask for it too soon.
func (c *cache[V]) drop(now time.Time) bool {
	var oldest string
	for key, e := range c.kept {
		if now.Sub(e.asked) >= askEvery && (oldest == "" || e.asked.Before(c.kept[oldest].asked)) {
			oldest = key
		}
	}
	delete(c.kept, oldest)
	return oldest != ""
}

// guarded turns a panic of a library into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the library that reads it broke: %s", oneLine(fmt.Sprint(p)))
		}
	}()
	return f()
}

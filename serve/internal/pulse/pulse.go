package pulse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const (
	// Patience is how long brokers may take for an answer of a few bytes.
	Patience = 5 * time.Second
	// most is how long ago an answer may be until brokers count as silent.
	most = 15 * time.Second
	// grace is how long a question may take until Attend asks whether the brokers are there.
	grace = time.Second
)

// ErrSilent reports that brokers did not answer within Patience.
var ErrSilent = fmt.Errorf("the brokers did not answer within %v: ask again", Patience)

// Pulse knows when the brokers of a cluster last answered. It is safe for concurrent use.
type Pulse struct {
	most time.Duration

	mu    sync.Mutex
	admin *kadm.Client // nil until Use
	last  time.Time    // zero before the first answer
}

// New returns the pulse of brokers that are asked once in a while, each time for two answers.
func New(every time.Duration) *Pulse { return &Pulse{most: max(most, every+2*Patience)} }

// Use sets the client by which Attend asks, and returns it.
func (p *Pulse) Use(admin *kadm.Client) *kadm.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.admin = admin
	return admin
}

// Beat registers that brokers answered.
func (p *Pulse) Beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// SilentSince returns when brokers last answered, if that is too long ago; zero otherwise.
func (p *Pulse) SilentSince() time.Time {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	return p.TooLong(last)
}

// TooLong returns the time of an answer if brokers have been silent since; zero otherwise, and for
// no answer.
func (p *Pulse) TooLong(last time.Time) time.Time {
	if last.IsZero() || time.Since(last) < p.most {
		return time.Time{}
	}
	return last
}

// Attend returns what ask returns, which waits for brokers. Its context ends, and the error is
// ErrSilent, when a broker that leads a partition of the topics does not answer within Patience. A
// long answer is no silence.
func Attend[T any](ctx context.Context, p *Pulse, topics []string, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		if p.falls(ctx, topics) {
			cancel(ErrSilent)
		}
	})
	got, err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		err = ErrSilent
	}
	return got, err
}

// falls reports that a broker fell silent. It returns false when ctx ends.
func (p *Pulse) falls(ctx context.Context, topics []string) bool {
	p.mu.Lock()
	admin := p.admin
	p.mu.Unlock()
	if admin == nil {
		return false
	}
	pause := time.NewTicker(grace)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-pause.C:
		}
		asked, end := context.WithTimeout(ctx, Patience-grace)
		_, _ = admin.ListEndOffsets(asked, topics...) // an error is an answer, too
		late := asked.Err() != nil && ctx.Err() == nil
		end()
		if late {
			return true
		}
	}
}

package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// patience is for how long a message is tried, since its first try.
	patience = 15 * time.Minute
	// longest is the longest pause between two tries, but for what is random.
	longest = 5 * time.Minute
	// atOnce bounds the tries of one receiver that go on at once.
	atOnce = 10
	// lastTime is how long a try may go on behind the end of the receiver.
	lastTime = 2 * time.Second
)

// Receiver sends messages to one URL. Each waits for itself, so one that is refused or not answered
// holds up no other.
type Receiver struct {
	name  string
	url   string
	queue chan Message
	room  chan struct{} // has an element for each message that has not ended
	turns chan struct{} // has an element for each try that goes on
	log   *slog.Logger
	base  http.RoundTripper

	mu     sync.Mutex
	newest map[string]*turn // by key
}

// turn is the place of a message among those of its key: one after the other is tried.
type turn struct {
	newer, ended chan struct{} // closed when there is newer news, and when the message has ended
}

// New checks the URL and returns a receiver. name stands for it in the log, since a URL has
// secrets. At most so many messages wait for it.
func New(name, url string, waiting int, log *slog.Logger) (*Receiver, error) {
	service, err := locate(url)
	if err == nil {
		_, err = sender(service, url)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it is as in slack://… or smtp://…, see https://shoutrrr.nickfedor.com", hidden(err, url))
	}
	return &Receiver{
		name: name, url: url, queue: make(chan Message, waiting), room: make(chan struct{}, waiting), turns: make(chan struct{}, atOnce), log: log,
		newest: map[string]*turn{}, base: ownTransport(),
	}, nil
}

// ErrDropped reports that a message was not sent: its Drop said so, or there is a newer one of its
// key.
var ErrDropped = errors.New("another process, or a newer message, says it")

// Send queues a message, and reports whether there was room for it. It does not block. The Done of
// a message for which there was none is not called.
func (r *Receiver) Send(m Message) bool {
	select {
	case r.room <- struct{}{}:
		r.queue <- m // it has the same room
		return true
	default:
		return false
	}
}

// Run sends what is queued, until ctx ends. It does not call Done of messages that wait then.
func (r *Receiver) Run(ctx context.Context) {
	defer (&http.Client{Transport: r.base}).CloseIdleConnections()
	var sending sync.WaitGroup
	defer sending.Wait()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case m := <-r.queue:
			before, mine := r.begin(m.Key)
			sending.Go(func() {
				<-before
				err := r.try(ctx, &m, mine.newer)
				r.end(m.Key, mine)
				if ctx.Err() == nil || err == nil {
					m.Done(err)
				}
			})
		}
	}
}

// begin takes a turn among the messages of a key, and returns when the one before has ended. That
// one ends now, unless a try of it goes on.
func (r *Receiver) begin(key string) (before <-chan struct{}, mine *turn) {
	mine = &turn{make(chan struct{}), make(chan struct{})}
	none := make(chan struct{})
	close(none)
	if key == "" {
		return none, mine
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.newest[key]
	r.newest[key] = mine
	if last == nil {
		return none, mine
	}
	close(last.newer)
	return last.ended, mine
}

func (r *Receiver) end(key string, mine *turn) {
	r.mu.Lock()
	if r.newest[key] == mine {
		delete(r.newest, key)
	}
	r.mu.Unlock()
	close(mine.ended)
	<-r.room
}

// try sends a message until the receiver accepts it, refuses it for good, or did not accept it for
// long. The pauses grow from a second to minutes.
func (r *Receiver) try(ctx context.Context, m *Message, newer <-chan struct{}) error {
	var first time.Time
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-newer:
			return ErrDropped
		case r.turns <- struct{}{}:
		}
		if n == 0 {
			first = time.Now()
		}
		err := r.send(ctx, m, newer)
		<-r.turns
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrDropped) {
			return err
		}
		pause := min(time.Second<<min(n, 10), longest)
		if errors.Is(err, errUnanswered) { // a further try may deliver it twice
			pause = longest
		}
		if e, ok := errors.AsType[*statusError](err); ok { // each try before may put it off
			pause = max(pause, min(e.after, longest))
		}
		pause += rand.N(pause / 2)
		refused := isRefusal(err)
		err = hidden(err, r.url)
		if refused || time.Since(first)+pause > patience {
			return err
		}
		r.log.Warn("siding: a notification was not accepted", "receiver", r.name, "title", m.Title, "error", err, "tries", n+1, "next", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-newer:
			return ErrDropped
		case <-time.After(pause):
		}
	}
}

// send sends a message once, unless it is dropped. The service is a new one: the library keeps in
// it what a message sets.
func (r *Receiver) send(ctx context.Context, m *Message, newer <-chan struct{}) error {
	select {
	case <-newer:
		return ErrDropped
	default:
	}
	if m.Drop != nil && m.Drop() {
		return ErrDropped
	}
	service, err := locate(r.url)
	if err != nil {
		return err
	}
	send, err := sender(service, r.url)
	if err != nil {
		return err
	}
	trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	// It may be accepted just now. Then the next server must know.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, cancel) })()
	x := newExchange(trying, r.base)
	err = send(x, m)
	switch {
	case trying.Err() != nil && x.sent.Load() && (err != nil || x.failed != nil):
		return errUnanswered
	case x.failed != nil:
		return x.failed
	}
	return err
}

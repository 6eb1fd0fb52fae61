package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

const (
	// tries is how often a message is sent: over some quarter of an hour.
	tries = 10
	// sendTime bounds one try.
	sendTime = 15 * time.Second
	// lastTime is how long a try may go on behind the end of the receiver.
	lastTime = 2 * time.Second
	// hanging bounds the tries of one receiver that go on behind their time, since the library
	// cannot end them. Further ones fail until one of these ends.
	hanging = 10
)

// Receiver sends messages to one URL, one after the other.
type Receiver struct {
	name    string
	url     string
	service types.Service
	queue   chan Message
	calls   chan struct{} // has an element for each call of the service that goes on
	log     *slog.Logger
}

// New checks the URL and returns a receiver. name stands for it in the log, since a URL has
// secrets. At most so many messages wait for it.
func New(name, url string, waiting int, log *slog.Logger) (*Receiver, error) {
	if logsIn(url) {
		return nil, errors.New("matrix with a user and a password logs in before the first message, so a server could not start while Matrix is down: give an access token, as in matrix://:TOKEN@host")
	}
	service, err := locate(url)
	if err != nil {
		return nil, fmt.Errorf("%w: it is as in slack://… or smtp://…, see https://shoutrrr.nickfedor.com", hidden(err, url))
	}
	return &Receiver{name: name, url: url, service: service, queue: make(chan Message, waiting), calls: make(chan struct{}, hanging), log: log}, nil
}

// locate returns the service of a URL. The library panics at some URLs that it cannot read.
func locate(url string) (s types.Service, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the URL cannot be read")
		}
	}()
	var r router.ServiceRouter
	return r.Locate(url)
}

// ErrDropped reports that a message was not sent, since its Drop said so.
var ErrDropped = errors.New("another process tells of it")

var (
	errHangs = fmt.Errorf("no answer within %v", sendTime)
	errCalls = fmt.Errorf("no answer yet to %d earlier tries", hanging)
)

// Send queues a message, and reports whether there was room for it. It does not block. The Done of
// a message for which there was none is not called.
func (r *Receiver) Send(m Message) bool {
	select {
	case r.queue <- m:
		return true
	default:
		return false
	}
}

// Run sends what is queued, until ctx ends. It does not call Done of messages that wait then, and
// leaves a try behind that hangs.
func (r *Receiver) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case m := <-r.queue:
			if err := r.try(ctx, &m); ctx.Err() == nil || err == nil {
				m.Done(err)
			}
		}
	}
}

// try sends a message until the receiver accepts it, with pauses that grow from a second to five
// minutes.
func (r *Receiver) try(ctx context.Context, m *Message) (err error) {
	for n := range tries {
		if m.Drop != nil && m.Drop() {
			return ErrDropped
		}
		if err = r.send(ctx, m); err == nil || ctx.Err() != nil {
			return err
		}
		err = hidden(err, r.url)
		pause := min(time.Second<<n, 5*time.Minute)
		pause += rand.N(pause / 2)
		r.log.Warn("siding: a notification was not accepted", "receiver", r.name, "title", m.Title, "error", err, "tries", n+1, "next", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}

// send sends a message once.
func (r *Receiver) send(ctx context.Context, m *Message) error {
	select {
	case r.calls <- struct{}{}:
	default:
		return errCalls
	}
	text, params := m.words(r.service)
	sent := make(chan error, 1)
	go func() {
		defer func() { <-r.calls }()
		sent <- r.service.Send(text, &params)
	}()
	select {
	case err := <-sent:
		return err
	case <-time.After(sendTime):
		return errHangs
	case <-ctx.Done():
		// It may have been accepted just now. Then whoever tells next must know.
		select {
		case err := <-sent:
			return err
		case <-time.After(lastTime):
			return ctx.Err()
		}
	}
}

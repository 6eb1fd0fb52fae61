package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nicholas-fedor/shoutrrr"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// Message is a message to people.
type Message struct {
	Title, Text string
	// Done is called once: with nil when the receiver accepted the message, or else with the last
	// error.
	Done func(error)
}

const (
	// queued bounds the messages that wait for one receiver; beyond it messages are given up.
	queued = 1000
	// tries is how often a message is sent: over some quarter of an hour.
	tries = 10
	// sendTime bounds one try.
	sendTime = 15 * time.Second
)

// Receiver sends messages to one URL, one after the other.
type Receiver struct {
	name   string
	url    string
	sender *router.ServiceRouter
	queue  chan Message
	log    *slog.Logger
}

// New checks the URL and returns a receiver. name stands for it in the log, since a URL has secrets.
func New(name, url string, log *slog.Logger) (*Receiver, error) {
	sender, err := shoutrrr.CreateSender(url)
	if err != nil {
		return nil, fmt.Errorf("notify: %s: %w", name, hidden(err, url))
	}
	sender.Timeout = sendTime
	return &Receiver{name: name, url: url, sender: sender, queue: make(chan Message, queued), log: log}, nil
}

var errQueue = errors.New("too many messages wait for the receiver")

// Send queues a message. It does not block.
func (r *Receiver) Send(m Message) {
	select {
	case r.queue <- m:
	default:
		m.Done(errQueue)
	}
}

// Run sends what is queued, until ctx ends. Messages that wait then are given up.
func (r *Receiver) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-r.queue:
			m.Done(r.try(ctx, m))
		}
	}
}

// try sends a message until the receiver accepts it, with pauses that grow from a second to five
// minutes.
func (r *Receiver) try(ctx context.Context, m Message) (err error) {
	for n := range tries {
		params := types.Params{"title": m.Title}
		if err = errors.Join(r.sender.Send(m.Text, &params)...); err == nil {
			return nil
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

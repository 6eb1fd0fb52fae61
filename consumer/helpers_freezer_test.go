package consumer_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// freezer freezes brokers for the clients that dial through it, as docker pause does: connections
// stay open, new ones are accepted, and nothing is answered. When the brokers thaw they handle what
// was sent to them meanwhile, also over connections that the clients have closed.
type freezer struct {
	dial func(context.Context, string, string) (net.Conn, error)

	mu     sync.Mutex
	frozen func(address string) bool
	at     []kmsg.Key // with these, a request freezes its broker
	hangs  bool       // dialing a frozen broker
	conns  []*frozenConn
}

func newFreezer(t *testing.T, k *consumertest.Kafka) *freezer {
	t.Helper()
	return &freezer{
		dial:   client(t, k).OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error)),
		frozen: func(string) bool { return false },
	}
}

// freeze freezes the brokers at some addresses, by default all.
func (f *freezer) freeze(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = func(at string) bool { return len(addresses) == 0 || slices.Contains(addresses, at) }
}

// freezeAt freezes all brokers at the first request of a kind.
func (f *freezer) freezeAt(keys ...kmsg.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = keys
}

// cutOff makes new connections to frozen brokers hang.
func (f *freezer) cutOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs = true
}

// thaw ends the frost.
func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = func(string) bool { return false }
	for _, c := range f.conns {
		if c.closed {
			_ = c.Conn.SetDeadline(time.Time{})
			go func() { _, _ = io.Copy(io.Discard, c.Conn) }()
		}
		go c.flush()
	}
	f.conns = nil
}

func (f *freezer) dialer() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		f.mu.Lock()
		hangs := f.hangs && f.frozen(address)
		f.mu.Unlock()
		if hangs {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, err := f.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &frozenConn{Conn: conn, f: f, address: address}, nil
	})
}

// frozenConn is a connection to a broker that may be frozen. The freezer's lock guards its fields.
type frozenConn struct {
	net.Conn
	f       *freezer
	address string
	held    bool   // until its broker thaws and has all that was sent
	sent    []byte // meanwhile
	closed  bool
}

func (c *frozenConn) Write(b []byte) (int, error) {
	c.f.mu.Lock()
	if len(b) >= 6 && slices.Contains(c.f.at, kmsg.Key(binary.BigEndian.Uint16(b[4:]))) {
		c.f.frozen, c.f.at = func(string) bool { return true }, nil
	}
	if c.hold() {
		defer c.f.mu.Unlock()
		if c.closed {
			return 0, net.ErrClosed
		}
		c.sent = append(c.sent, b...)
		return len(b), nil
	}
	c.f.mu.Unlock()
	return c.Conn.Write(b)
}

// Close sends a frozen broker nothing.
func (c *frozenConn) Close() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if !c.hold() {
		return c.Conn.Close()
	}
	c.closed = true
	return c.Conn.SetDeadline(time.Unix(1, 0)) // ends reads
}

// hold reports whether the connection's broker is frozen, or has not read all yet.
func (c *frozenConn) hold() bool {
	if !c.held && c.f.frozen(c.address) {
		c.held = true
		c.f.conns = append(c.f.conns, c)
	}
	return c.held
}

// flush sends what was held back.
func (c *frozenConn) flush() {
	for {
		c.f.mu.Lock()
		b := c.sent
		c.sent, c.held = nil, len(b) > 0
		closed := c.closed
		c.f.mu.Unlock()
		if len(b) == 0 {
			if closed {
				_ = c.Conn.Close()
			}
			return
		}
		_, _ = c.Conn.Write(b) // the broker may have closed it
	}
}

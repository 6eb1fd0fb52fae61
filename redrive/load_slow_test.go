package redrive_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// line carries so many bytes a second in each direction, for all connections together, in the order
// of sending.
type line struct {
	rate     atomic.Int64 // bytes a second
	up, down lane
}

// lane is one direction of a line.
type lane struct {
	mu   sync.Mutex
	free time.Time
}

// carry waits until n bytes have passed.
func (l *lane) carry(n int, rate int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return time.Until(l.free)
}

// onLine is a connection over a line.
type onLine struct {
	net.Conn
	line        *line
	read, write atomic.Pointer[time.Time]
}

func (c *onLine) SetReadDeadline(at time.Time) error {
	c.read.Store(&at)
	return c.Conn.SetReadDeadline(at)
}

func (c *onLine) SetWriteDeadline(at time.Time) error {
	c.write.Store(&at)
	return c.Conn.SetWriteDeadline(at)
}

// pass waits for n bytes, unless a deadline comes first.
func (c *onLine) pass(l *lane, n int, deadline *atomic.Pointer[time.Time]) error {
	for wait := l.carry(n, c.line.rate.Load()); wait > 0; {
		step := min(wait, 20*time.Millisecond)
		time.Sleep(step)
		wait -= step
		if at := deadline.Load(); at != nil && !at.IsZero() && !time.Now().Before(*at) {
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// linePiece is how much of one connection goes before it is another's turn.
const linePiece = 4 << 10

func (c *onLine) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), linePiece)]
		if err := c.pass(&c.line.up, len(piece), &c.write); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil {
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}

func (c *onLine) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), linePiece)])
	if n > 0 {
		if err := c.pass(&c.line.down, n, &c.read); err != nil {
			return 0, err
		}
	}
	return n, err
}

// large makes n letters of a size beside the one that [letters] makes, of which the broker keeps
// little.
func large(t *testing.T, k *consumertest.Kafka, n, size int) *switched {
	t.Helper()
	s := letters(t, k, 1, succeeding)
	first := at(t, k, "orders.dlq", 0)[0]
	value := make([]byte, size)
	var records []*kgo.Record
	for i := range n {
		h := append([]kgo.RecordHeader(nil), first.Headers...)
		for j := range h {
			if h[j].Key == headers.OriginalOffset {
				h[j].Value = fmt.Append(nil, i+1)
			}
		}
		records = append(records, &kgo.Record{Topic: "orders.dlq", Value: value, Headers: h})
	}
	k.Produce(records...)
	return s
}

// slowly is a redriver over a line, which sends its letters as large as they are.
func slowly(t *testing.T, k *consumertest.Kafka, l *line) *redrive.Redriver {
	t.Helper()
	opts := append(dialed(t, k.Opts(), func(c net.Conn) net.Conn { return &onLine{Conn: c, line: l} }), kgo.ProducerBatchCompression(kgo.NoCompression()))
	return redriverOf(t, redrive.Config{Kafka: opts})
}

// Transactions were bounded by the number of their letters alone. The letters that were read while
// the canary ran took longer than the broker allows a transaction, each time. So the run sent only
// its canary, and reported that another process had touched it.
func TestLoad_OnASlowLinkAllLettersArrive(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	type link struct {
		n, size     int
		rate, later int64 // later: once a third was sent
		most        time.Duration
		open        time.Duration // how long a reader of the target may be held up
	}
	for name, c := range map[string]link{
		"slow":              {400, 100_000, 1_000_000, 1_000_000, 54 * time.Second, time.Second},
		"it slows down":     {400, 100_000, 20_000_000, 500_000, 80 * time.Second, 5 * time.Second},
		"it speeds up":      {400, 100_000, 300_000, 20_000_000, 60 * time.Second, time.Second},
		"a letter takes 9s": {8, 900_000, 100_000, 100_000, 110 * time.Second, 12 * time.Second},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := large(t, k, c.n, c.size)
			canary := 20 * time.Second // meanwhile the others are read
			s.set(func(context.Context, *kgo.Record) error {
				time.Sleep(canary)
				canary = 0
				return nil
			})
			l := &line{}
			l.rate.Store(1 << 40)
			r := slowly(t, k, l)
			p := plan(t, r)
			l.rate.Store(c.rate)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			held := openFor(ctx, k, "orders.retry.5s")
			var began time.Time
			var sent time.Duration
			all := int64(c.n + 1)
			o, err := r.Run(ctx, p, ann(redrive.Pace{Rate: -1, Ramp: -1}, func(e redrive.Event) {
				switch {
				case e.State == redrive.Sending && began.IsZero():
					began = time.Now()
				case e.Counts.Sent > all/3:
					l.rate.Store(c.later)
				}
				if e.Message != "" {
					t.Logf("%v: %s", time.Since(began), e.Message)
				}
				if e.Counts.Sent == all && sent == 0 {
					sent = time.Since(began)
				}
				if strings.Contains(e.Message, "another process") || strings.Contains(e.Message, "who has") {
					t.Errorf("it says %q", e.Message)
				}
			}))
			cancel()
			open := <-held
			t.Logf("all were sent after %v, and no reader was held up for longer than %v", sent, open)
			succeeds(t, all)(o, err)
			if sent > c.most {
				t.Errorf("%d letters of %d bytes were sent after %v, want %v", c.n, c.size, sent, c.most)
			}
			if open > c.open {
				t.Errorf("a transaction was open for %v, want %v", open, c.open)
			}
		})
	}
}

// A broker's answer had up to a megabyte of each partition: more than the connection carries within
// the client's timeout, each time. So the run never ended, and nothing counted the letters.
func TestLoad_OnASlowLinkAllPartitionsAreRead(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const partitions = 24
		k.CreateTopic("orders", partitions)
		s := &switched{}
		s.set(failing("tax"))
		s.run(k)
		k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders"})[0], "terminal")
		s.set(succeeding)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{}, 1)
		value := make([]byte, 900_000)
		var others []*kgo.Record
		for i := range partitions {
			others = append(others, &kgo.Record{Topic: "orders.dlq", Partition: int32(i), Value: value})
		}
		cl := clientOf(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err := cl.ProduceSync(t.Context(), others...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		l := &line{}
		l.rate.Store(1_000_000)
		succeeds(t, 1)(slowly(t, k, l).Resume(within(t, 5*time.Minute), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		opts := dialed(t, k.Opts(), func(c net.Conn) net.Conn { return &onLine{Conn: c, line: l} })
		sum, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil || sum.Open != partitions {
			t.Errorf("it counts %+v, %v", sum, err)
		}
	})
}

// openFor returns, once ctx has ended, the longest time for which a committed reader of a topic's
// first partition was held up.
func openFor(ctx context.Context, k *consumertest.Kafka, topic string) <-chan time.Duration {
	longest := make(chan time.Duration, 1)
	go func() {
		var since time.Time
		var most time.Duration
		stable := int64(-1)
		for ctx.Err() == nil {
			now := time.Now()
			switch at := k.Cluster.PartitionInfo(topic, 0); {
			case at.LastStableOffset == at.HighWatermark:
				since = time.Time{}
			case since.IsZero() || at.LastStableOffset != stable:
				since, stable = now, at.LastStableOffset
			default:
				most = max(most, now.Sub(since))
			}
			time.Sleep(10 * time.Millisecond)
		}
		longest <- most
	}()
	return longest
}

// A letter of 900 KB took 45 s on its operator's connection, and so did the heartbeat behind it. A
// colleague's resume took the run from its process.
func TestLoad_OnASlowLinkARunSeemsAlive(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := large(t, k, 6, 900_000)
		s.set(succeeding)
		l := &line{}
		l.rate.Store(1 << 40)
		r := slowly(t, k, l)
		p := plan(t, r)
		l.rate.Store(20_000)
		ended := make(chan error, 1)
		go func() {
			_, err := r.Run(within(t, 20*time.Minute), p, ann(redrive.Pace{Rate: -1, Ramp: -1}, nil))
			ended <- err
		}()
		colleague := redriver(t, k)
		oldest := time.Duration(0)
		for range 60 {
			time.Sleep(3 * time.Second)
			o, err := colleague.Progress(t.Context(), "orders.dlq", p.ID)
			if err != nil {
				continue // not begun
			}
			age := time.Since(o.Heartbeat)
			if oldest = max(oldest, age); age > o.SilentAfter {
				t.Errorf("a heartbeat is %v old, and the run counts as silent after %v", age, o.SilentAfter)
			}
		}
		if oldest < 25*time.Second {
			t.Errorf("no heartbeat was older than %v: the connection is not slow", oldest)
		}
		_, err := colleague.Resume(within(t, 5*time.Minute), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent())
		refused(t, err, redrive.RefusedOwned, "is running: the last heartbeat of ")
		if err := <-ended; err != nil {
			t.Errorf("the run ended with %v", err)
		}
		time.Sleep(2 * time.Minute) // what is on the line arrives
	})
}

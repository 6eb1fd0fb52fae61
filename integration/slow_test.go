package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

// narrow limits the bytes a second to the brokers, over all of its connections together.
type narrow struct {
	rate  int
	mu    sync.Mutex
	free  time.Time
	wrote int // bytes
}

func (n *narrow) dial(ctx context.Context, network, host string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return &narrowConn{c, n}, nil
}

// catchUp is the time whose bytes may be sent at once. A sleep takes longer than requested: without
// catchUp the line was slower than its rate, by nearly half at 5 MB/s.
const catchUp = 50 * time.Millisecond

type narrowConn struct {
	net.Conn
	line *narrow
}

func (c *narrowConn) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), 16<<10)]
		c.line.mu.Lock()
		if least := time.Now().Add(-catchUp); c.line.free.Before(least) {
			c.line.free = least
		}
		c.line.wrote += len(piece)
		c.line.free = c.line.free.Add(time.Duration(len(piece)) * time.Second / time.Duration(c.line.rate))
		wait := time.Until(c.line.free)
		c.line.mu.Unlock()
		time.Sleep(wait)
		var n int
		n, err = c.Conn.Write(piece)
		written += n
		b = b[n:]
	}
	return written, err
}

// Transactions were bounded by the number of their letters, and expired on a slow connection each
// time. redrive/load_slow_test.go tests it in virtual time, over several connections.
func TestSlowLink_ARunTakesAsLongAsItsLettersTake(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	v := s.deploy(topic, topic, time.Second)
	const n, size, rate = 400, 100_000, 3_000_000 // longer than a transaction may take
	value := make([]byte, size/2)
	rand.Read(value)
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, "order %d %x", i, value)})
	}
	s.Produce(records...)
	s.await("dead letters", func() bool { return s.count(topic+".dlq") >= n })
	v.fixed()
	line := &narrow{rate: rate}
	opts := append(s.Opts(), kgo.Dialer(line.dial), kgo.ProducerBatchCompression(kgo.NoCompression()))
	r, err := redrive.New(redrive.Config{Kafka: opts})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Plan(t.Context(), redrive.Selection{Topic: topic + ".dlq"})
	if err != nil {
		t.Fatal(err)
	}
	var began time.Time
	var sent time.Duration
	o, err := r.Run(t.Context(), p, redrive.RunOptions{By: "ann", Pace: redrive.Pace{Rate: -1, Ramp: -1, Window: time.Second}, On: func(e redrive.Event) {
		if e.State == redrive.Sending && began.IsZero() {
			began = time.Now()
		}
		if e.Counts.Sent == n && sent == 0 {
			sent = time.Since(began)
		}
		if strings.Contains(e.Message, "another process") || strings.Contains(e.Message, "fenced this process") {
			t.Errorf("it says %q", e.Message)
		}
	}})
	t.Logf("all were sent after %v", sent)
	if err != nil || o.Counts.Sent != n {
		t.Errorf("the run ended with %v, and %+v", err, o.Counts)
	}
	// A transaction that expires is sent again. How long the run takes depends on the machine, too:
	// the proof of the time is the test in virtual time.
	line.mu.Lock()
	defer line.mu.Unlock()
	if least := n * size; line.wrote < least || line.wrote > least*3/2 {
		t.Errorf("%d letters of %d bytes took %d bytes of the line", n, size, line.wrote)
	}
	s.onceEach(topic, topic+".retry.1s", n)
}

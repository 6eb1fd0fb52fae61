package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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
	r, p := s.planned(topic, kgo.Dialer(line.dial), kgo.ProducerBatchCompression(kgo.NoCompression()))
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

// The strict proof of a run's rate is in virtual time (redrive/pace_test.go), without other load.
// Here the run is held to the most that a token bucket lets through, also on a busy machine. The
// times are those at which the program produced its records, on a topic that
// keeps them: a broker's own times would include its pauses.
func TestTheProgramKeepsItsRate(t *testing.T) {
	t.Parallel()
	binary(t)
	const span, letters = 6 * time.Second, 7 // seconds' worth
	for _, rate := range []int{50, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			s := onKafka(t)
			topic := topicName(t)
			s.CreateTopic(topic, 2)
			s.CreateTopic(topic+"-fixed", 2)
			s.deploy(topic, topic, time.Second)
			s.incident(topic, "order", letters*rate)
			s.begin("run", topic+".dlq", "--yes", "--target", topic+"-fixed", "--rate", fmt.Sprint(rate), "--canary", "0", "--ramp", "0", "--window", "0", "--max-lag", "-1").ends(0)

			var sent []time.Time
			for _, found := range s.returned(topic+"-fixed", kgo.ReadCommitted()) {
				for _, r := range found {
					sent = append(sent, r.Timestamp)
				}
			}
			slices.SortFunc(sent, time.Time.Compare)
			if len(sent) != letters*rate {
				t.Fatalf("%d letters were sent, want %d", len(sent), letters*rate)
			}
			burst, within := rate/10, 0
			for i, at := range sent {
				if at.Sub(sent[0]) < span {
					within++
				}
				// A timestamp is off by up to a millisecond, and so is each end of a second.
				if j := i + rate + burst + 2*rate/1000 + 1; j < len(sent) && sent[j].Sub(at) < time.Second {
					t.Fatalf("records %d to %d were sent within %v", i, j, sent[j].Sub(at))
				}
			}
			most := float64(rate) * span.Seconds()
			if float64(within) > 1.01*most+float64(burst) {
				t.Errorf("%d were sent in %v, want %.0f at most", within, span, most)
			}
		})
	}
}

// A broker refuses whole batches. It then refuses the later batches of the transaction as well,
// since they are out of order.
func TestOnlyLettersThatABrokerWillNotTakeStay(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	v := s.deploy(topic, topic, time.Second)
	const n, large = 3_000, 3
	var records []*kgo.Record
	for i := range n {
		size := 500
		if i%(n/large) == 500 {
			size = 15_000
		}
		value := make([]byte, size)
		rand.Read(value) // never fails
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: value})
	}
	s.Produce(records...)
	s.await("dead letters", func() bool { return s.count(topic+".dlq") >= n })
	v.fixed()
	limit := "10000"
	if _, err := s.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}, topic+".retry.1s"); err != nil {
		t.Fatal(err)
	}
	r, p := s.planned(topic)
	messages := map[string]bool{}
	o, err := r.Run(t.Context(), p, redrive.RunOptions{
		By: "ann", Pace: redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, MaxLag: -1, Window: 2 * time.Second},
		On: func(e redrive.Event) { messages[e.Message] = true },
	})
	if c := o.Counts; err != nil || c.Sent != n-large || c.Skipped[redrive.SkippedTooLarge] != large {
		t.Errorf("the run ended with %v, and %+v; it messages %v", err, o, messages)
	}
	s.onceEach(topic, topic+".retry.1s", n-large)
}

package dlq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
)

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// prose returns n bytes of text that compress only a little.
func prose(n int) string {
	b := noise(n)
	for i := range b {
		b[i] = ' ' + b[i]%95
	}
	return string(b)
}

// limit sets a topic's max.message.bytes.
func (k *kafka) limit(t *testing.T, topic string, to int) {
	t.Helper()
	set := fmt.Sprint(to)
	rs, err := kadm.NewClient(k.cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &set}}, topic)
	if err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
}

// logged collects what a client logs.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (*logged) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l *logged) Log(_ kgo.LogLevel, msg string, about ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.HasPrefix(msg, "siding: ") {
		l.lines = append(l.lines, fmt.Sprint(append([]any{msg}, about...)...))
	}
}

// story returns a Meta with large parts.
func story(original bool) headers.Meta {
	at := time.UnixMilli(1_700_000_000_000)
	m := headers.Meta{
		Group: "billing", Attempts: 2, Class: "busy", Message: prose(1000), Stack: "main.handle\n", Reason: headers.ReasonExhausted, FailedAt: at,
		History: []headers.Attempt{{Number: 1, Class: "busy", At: at}},
	}
	if original {
		m.Original = headers.Position{Topic: "orders", Offset: 7, Timestamp: at}
	}
	return m
}

func TestWriter_OversizeLetterKeepsWhatFits(t *testing.T) {
	t.Parallel()
	record := func() *kgo.Record {
		return &kgo.Record{Topic: "orders.retry.5s", Offset: 41, Key: []byte("k"), Value: noise(10_000), Headers: []kgo.RecordHeader{header("mine", "1"), header(headers.Attempts, "-1")}}
	}
	for name, tt := range map[string]struct {
		limit          int
		opts           []kgo.Opt
		nowhere        bool // the value can't be found elsewhere
		written        bool
		value, message bool
	}{
		"it fits":                  {limit: 1 << 20, written: true, value: true, message: true},
		"shrunk":                   {limit: 11_000, written: true, value: true},
		"without its value":        {limit: 9_000, written: true, message: true},
		"without anything":         {limit: 700, written: true},
		"not even that":            {limit: 100},
		"a value that is nowhere":  {limit: 9_000, nowhere: true},
		"the same, shrunk":         {limit: 11_000, nowhere: true, written: true, value: true},
		"too large for the client": {limit: 1 << 20, opts: []kgo.Opt{kgo.ProducerBatchMaxBytes(9_000)}},
		"the same, shrunk to fit":  {limit: 1 << 20, opts: []kgo.Opt{kgo.ProducerBatchMaxBytes(11_000)}, written: true, value: true},
		"too large for its buffer": {limit: 1 << 20, opts: []kgo.Opt{kgo.MaxBufferedBytes(9_000)}},
	} {
		runOnKafka(t, name, func(t *testing.T, k *kafka) {
			k.limit(t, "one.dlq", tt.limit)
			log := &logged{}
			cl := k.client(t, append(tt.opts, kgo.WithLogger(log))...)
			sent := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
			w, r, done := NewWriter(cl, "one.dlq"), record(), make(chan error, 2)
			w.Write(t.Context(), r, story(!tt.nowhere), func(err error) { done <- err })
			err := <-done
			time.Sleep(time.Minute)
			if n := sent.Hits(); n > 5 {
				t.Errorf("%d tries, want at most five", n)
			}
			if len(done) > 0 {
				t.Error("done was called again")
			}
			if len(w.queues) != 0 {
				t.Errorf("lines are left: %v", w.queues)
			}
			if !tt.written {
				if !errors.Is(err, kerr.MessageTooLarge) || len(log.lines) != 0 {
					t.Errorf("error %v, logged %q; want that it is too large", err, log.lines)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			l := k.only(t, "one.dlq")
			if bytes.Equal(l.Record.Value, r.Value) != tt.value || !tt.value && l.Record.Value != nil || l.Meta.ValueOmitted == tt.value || (l.Meta.Message != "") != tt.message {
				t.Errorf("letter with %d bytes of value, %+v; want value %v, message %v", len(l.Record.Value), l.Meta, tt.value, tt.message)
			}
			if string(l.Record.Key) != "k" || headers.Strip(l.Record.Headers)[0].Key != "mine" || l.MetaErr != nil {
				t.Errorf("letter %+v, %v", l.Record, l.MetaErr)
			}
			if said := strings.Contains(fmt.Sprint(log.lines), "orders/0/7"); said == tt.value || len(log.lines) > 1 {
				t.Errorf("logged %q, want where a value is that was left out", log.lines)
			}
		})
	}
}

func TestWriter_NeighborsOfAnOversizeLetterStayWhole(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.limit(t, "orders.dlq", 9_000)
		cl := k.client(t, kgo.ProducerLinger(50*time.Millisecond))
		w := NewWriter(cl, "orders.dlq")
		const n = 60
		calls := make(chan error, 2*n)
		write := func(i int) {
			r := &kgo.Record{Topic: "orders", Partition: int32(i % 3), Offset: int64(i), Value: fmt.Append(nil, i)}
			if i == 20 { // on partition 2
				r.Value = noise(10_000)
			}
			m := story(true)
			m.Original.Offset = int64(i)
			w.Write(t.Context(), r, m, func(err error) { calls <- err })
		}
		for i := range n / 2 {
			write(i)
		}
		// some are refused by now, and the others follow them
		time.Sleep(51 * time.Millisecond)
		for i := n / 2; i < n; i++ {
			write(i)
		}
		for range n {
			if err := <-calls; err != nil {
				t.Error(err)
			}
		}
		seen := map[int64]int{}
		for _, l := range k.letters(t, "orders.dlq") {
			i := l.Meta.Original.Offset
			seen[i]++
			if len(l.Meta.Message) != 1000 || l.Meta.ValueOmitted != (i == 20) || i != 20 && string(l.Record.Value) != fmt.Sprint(i) {
				t.Errorf("letter %d has value %q and says %+v; it shared a batch, and is to be whole", i, l.Record.Value, l.Meta)
			}
		}
		if len(seen) != n {
			t.Errorf("%d letters, want %d", len(seen), n)
		}
		for i, times := range seen {
			if times != 1 {
				t.Errorf("letter %d was written %d times", i, times)
			}
		}
		if len(calls) > 0 || len(w.queues) != 0 {
			t.Errorf("done was called %d times more, lines are left: %v", len(calls), w.queues)
		}
	})
}

// Letters that wait while another is sent alone have the same bound as the client's buffer.
func TestWriter_LettersHeldBehindOneAreBounded(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.limit(t, "one.dlq", 9_000)
		cl := k.client(t, kgo.MaxBufferedRecords(3))
		w := NewWriter(cl, "one.dlq")
		var large error
		wrote := make(chan struct{})
		w.Write(t.Context(), &kgo.Record{Topic: "orders", Value: noise(10_000)}, story(true), func(err error) {
			large = err
			close(wrote)
		})
		alone := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
		if err := alone.Wait(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		noLeader := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
		time.Sleep(time.Second) // the refused one goes alone now, and nowhere
		calls := make(chan error, 10)
		for range 5 {
			w.Write(t.Context(), &kgo.Record{Topic: "orders"}, headers.Meta{}, func(err error) { calls <- err })
		}
		if n := len(calls); n != 2 {
			t.Fatalf("%d letters are refused, want 2: three are held", n)
		}
		for range 2 {
			if err := <-calls; !errors.Is(err, kgo.ErrMaxBuffered) {
				t.Errorf("error %v, want %v", err, kgo.ErrMaxBuffered)
			}
		}
		noLeader.Remove()
		<-wrote
		if large != nil {
			t.Error(large)
		}
		for range 3 {
			if err := <-calls; err != nil {
				t.Error(err)
			}
		}
	})
}

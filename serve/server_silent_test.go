package serve_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// silenced makes dead-letter topics of sources, with a letter each. Fetches of them get no answer
// while the returned flag is set.
func (is *station) silenced(sources ...string) *atomic.Bool {
	is.t.Helper()
	cl := is.writer()
	silent, on := map[kadm.TopicID]bool{}, new(atomic.Bool)
	for _, source := range sources {
		for _, topic := range []string{source, source + ".dlq", source + ".dlq.ledger"} {
			is.k.CreateTopic(topic, 1)
		}
		is.lettersOf(source, 1)
		topics, err := kadm.NewClient(cl).ListTopics(is.t.Context(), source+".dlq")
		if err != nil {
			is.t.Fatal(err)
		}
		silent[topics[source+".dlq"].ID] = true
	}
	is.k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		is.k.Cluster.KeepControl()
		for _, of := range r.(*kmsg.FetchRequest).Topics {
			if on.Load() && silent[of.TopicID] {
				return nil, nil, true
			}
		}
		return nil, nil, false
	})
	return on
}

// The brokers of 60 topics that the server knows fall silent, and each of these gets a letter. A
// letter of another topic is counted soon, though its read stands in line behind theirs.
func TestServer_ManyTopicsThatFallSilentHoldUpNoOther(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := ofThree(t, k)
		var sources []string
		for i := range 60 {
			sources = append(sources, fmt.Sprint("s", i))
		}
		silent := is.silenced(sources...)
		is.serve(serve.Config{})
		is.lettersIn(0, 1)
		open := func() int64 { return ask[api.Topic](is, "/topics/orders.dlq").Open }
		time.Sleep(5 * time.Minute)
		if n := open(); n != 1 {
			t.Fatalf("%d letters are open, want 1", n)
		}
		silent.Store(true)
		for _, s := range sources {
			is.lettersOf(s, 1)
		}
		for n := range int64(5) {
			is.lettersIn(1, 1)
			begun := time.Now()
			is.within(4*time.Minute, "the letter is counted", func() bool { return open() == n+2 })
			t.Logf("counted after %v", time.Since(begun))
		}
	})
}

// Fetches of six large topics are slow, and each brings a letter. No more than two topics are read
// at once: each holds an answer of the brokers in memory. It is their ledgers that make them large.
func TestServer_ReadsFewSlowTopicsAtOnce(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters = 12
		sources := []string{"a", "b", "c", "d", "e", "f"}
		is := towns(t, k, sources...)
		admin := kadm.NewClient(is.writer())
		large := map[kadm.TopicID]bool{}
		cl := is.writer()
		for _, s := range sources {
			is.lettersOf(s, letters)
			for range 1000 {
				cl.Produce(t.Context(), ledgerrecord.Run(s+".dlq.ledger", "serve/of-a-test", []byte("{}")), nil)
			}
			if err := cl.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			topics, err := admin.ListTopics(t.Context(), s+".dlq")
			if err != nil {
				t.Fatal(err)
			}
			large[topics[s+".dlq"].ID] = true
		}
		var mu sync.Mutex
		begun, most, fetches := map[kadm.TopicID]bool{}, 0, 0
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			for _, of := range r.(*kmsg.FetchRequest).Topics {
				if !large[of.TopicID] || of.Partitions[0].FetchOffset >= letters {
					continue
				}
				of.Partitions[0].PartitionMaxBytes = 1 // one letter
				mu.Lock()
				begun[of.TopicID] = true
				most = max(most, len(begun))
				fetches++
				mu.Unlock()
				k.Cluster.SleepControl(func() { time.Sleep(time.Second) })
				if of.Partitions[0].FetchOffset == letters-1 {
					mu.Lock()
					delete(begun, of.TopicID)
					mu.Unlock()
				}
			}
			return nil, nil, false
		})
		is.serve(serve.Config{})
		is.within(5*time.Minute, "all are counted", func() bool {
			open := int64(0)
			for _, of := range ask[[]api.Topic](is, "/topics") {
				open += of.Open
			}
			return open == letters*int64(len(sources))
		})
		mu.Lock()
		defer mu.Unlock()
		if most != 2 || fetches < letters*len(sources) {
			t.Errorf("%d topics were read at once, want 2, by %d fetches", most, fetches)
		}
	})
}

// Paused brokers looked like calm: after 85 s the console said "quiet for 9 min", a topic had no
// problem, the server was ready, and a plan was answered after 81 s. Now each of these is said
// within 15 s, each request is answered within five, and when the brokers are back all is well.
func TestServer_SilentBrokersAreSaid(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const topic = "/topics/orders.dlq"
		is := outageAt(t, k, 3)
		retention := &serve.Retention{Every: 1000 * time.Hour}
		is.serve(serve.Config{Refresh: 2 * time.Second, RulesFile: rules(t, hourly), Topics: []serve.Topic{{Match: "*", Retention: retention}}})
		is.within(time.Minute, "the letters are known", func() bool {
			all := ask[[]api.Topic](is, "/topics")
			return len(all) == 1 && all[0].Open == 3
		})
		time.Sleep(9*time.Minute + 10*time.Second)
		words(t, is.Server, topic, "quiet for 9 min")
		said := func() bool { return ask[api.Topic](is, topic).Problem != "" }
		if said() || is.ready() != http.StatusOK {
			t.Fatalf("calm: a problem is said: %v, and /readyz answers %d", said(), is.ready())
		}
		_, frozen := is.breaks()
		frozen.Store(true)
		fell := time.Now()
		is.deafAnswers()
		time.Sleep(time.Until(fell.Add(15 * time.Second)))
		if !said() || is.ready() != http.StatusServiceUnavailable {
			t.Errorf("after 15 s a problem is said: %v, and /readyz answers %d", said(), is.ready())
		}
		words(t, is.Server, topic, " s ago · 3 open · quiet for 9 min", "The brokers do not answer: what stands here is as of")
		words(t, is.Server, "/", "nothing comes of 1 topic")
		time.Sleep(time.Until(fell.Add(85 * time.Second)))
		words(t, is.Server, topic, "as of 1 min ago · 3 open · quiet for 9 min")
		is.deafAnswers()
		frozen.Store(false)
		is.within(2*time.Minute, "all is as before", func() bool { return !said() && is.ready() == http.StatusOK })
		if _, page := visit(t, is.Server, httptest.NewRequest(http.MethodGet, topic, nil)); strings.Contains(page, "as of") {
			t.Errorf("the page still says of when it is: %s", page)
		}
	})
}

// deafAnswers asks at once for all that takes asking the brokers, and which changes nothing, while
// they are silent. Each is answered within five seconds.
func (is *station) deafAnswers() {
	is.t.Helper()
	const topic = "/topics/orders.dlq"
	var all sync.WaitGroup
	defer all.Wait()
	asks := func(method, path, body string) {
		all.Go(func() { is.answers(method, path, body, nil, 5*time.Second, api.Timeout) })
	}
	for _, path := range []string{
		"/api/v1" + topic + "/letters/0/0", "/api/v1" + topic + "/letters?where=true", "/api/v1" + topic + "/runs/none", "/api/v1" + topic + "/export", "/api/v1" + topic + "/retention",
		"/api/v1/rules/outage/topics/orders.dlq/dry-run",
		topic + "/letters/0/0", topic + "?where=true", topic + "/runs/none", topic + "/redrive", topic + "/discard?where=true", "/rules/outage/topics/orders.dlq",
	} {
		asks(http.MethodGet, path, "")
	}
	asks(http.MethodPost, "/api/v1"+topic+"/plan", "{}")
	asks(http.MethodPost, "/api/v1"+topic+"/runs", "{}")
}

// late returns an option by which a client gets each answer that long after the broker sent it.
func (is *station) late(by time.Duration) kgo.Opt {
	is.t.Helper()
	dial, ok := is.writer().OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	if !ok {
		is.t.Fatal("the broker is dialed in another way")
	}
	return kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := dial(ctx, network, host)
		if err != nil {
			return nil, err
		}
		c := &lateConn{Conn: conn, come: make(chan arrival, 100)}
		go c.receive(by)
		return c, nil
	})
}

// lateConn is a connection whose answers come later.
type lateConn struct {
	net.Conn
	come chan arrival
	rest []byte
}

type arrival struct {
	at   time.Time
	data []byte
	err  error
}

func (c *lateConn) receive(by time.Duration) {
	for {
		data := make([]byte, 4<<10)
		n, err := c.Conn.Read(data)
		c.come <- arrival{time.Now().Add(by), data[:n], err}
		if err != nil {
			close(c.come)
			return
		}
	}
}

func (c *lateConn) Read(into []byte) (int, error) {
	if len(c.rest) == 0 {
		got, ok := <-c.come
		if !ok {
			return 0, io.EOF
		}
		if got.err != nil {
			return 0, got.err
		}
		time.Sleep(time.Until(got.at))
		c.rest = got.data
	}
	n := copy(into, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// The brokers answer each request after half a second. Of 300 topics with a letter each the last
// one was known after 12 min 47 s, since each kept one of two places while it waited for some 30
// answers. Here a fifth of them are known within a fifth of two minutes, after ten seconds in which
// the server begins. All of them together hold no more in memory than before.
func TestServer_SlowBrokersAreReadSoon(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const topics = 60
		is := &station{t: t, k: k}
		cl := is.writer()
		for i := range topics {
			name := fmt.Sprint("t", i, ".dlq")
			k.CreateTopic(name, 1)
			k.CreateTopic(name+".ledger", 1)
			cl.Produce(t.Context(), &kgo.Record{Topic: name, Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}, nil)
			cl.Produce(t.Context(), ledgerrecord.Run(name+".ledger", "serve/of-a-test", []byte("{}")), nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var most atomic.Int64
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			most.Store(max(most.Load(), int64(r.(*kmsg.FetchRequest).MaxBytes)))
			return nil, nil, false
		})
		begun := time.Now()
		is.serve(serve.Config{}, is.late(500*time.Millisecond))
		is.within(10*time.Minute, "all are known", func() bool {
			known := 0
			for _, of := range ask[[]api.Topic](is, "/topics") {
				known += int(of.Open)
			}
			return known == topics
		})
		if took := time.Since(begun); took > 34*time.Second {
			t.Errorf("the last of %d topics was known after %v", topics, took)
		}
		if n := most.Load(); n > 64<<10 {
			t.Errorf("an answer may have %d bytes", n)
		}
	})
}

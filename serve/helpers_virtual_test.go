package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// station is a server in virtual time, over a broker with a service of orders.
type station struct {
	t *testing.T
	k *consumertest.Kafka
	*serve.Server
	broken atomic.Bool // the service fails with http.503
	done   atomic.Int64
	log    lines

	mu    sync.Mutex
	calls map[int64]int // of the service's handler, by the record's offset on orders
}

// called returns how often the service's handler was called, by record and in all.
func (is *station) called() (each map[int64]int, all int) {
	is.mu.Lock()
	defer is.mu.Unlock()
	for _, n := range is.calls {
		all += n
	}
	return maps.Clone(is.calls), all
}

// lines is a text that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count returns how often a text is among the lines.
func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// letter writes a letter whose record failed at a time.
func (is *station) letter(failed time.Time) {
	is.t.Helper()
	is.letterOf("http.503", failed)
}

// letterOf writes a letter of a class whose record failed at a time.
func (is *station) letterOf(class string, failed time.Time) {
	is.t.Helper()
	is.letterFor("billing", class, failed)
}

// letterFor writes a letter of a group and a class whose record failed at a time.
func (is *station) letterFor(group, class string, failed time.Time) {
	is.t.Helper()
	is.letterAt(0, group, class, failed)
}

// letterAt is letterFor of a record of a partition.
func (is *station) letterAt(partition int32, group, class string, failed time.Time) {
	is.t.Helper()
	r := &kgo.Record{Topic: "orders", Offset: time.Now().UnixNano(), Value: []byte("v")}
	bury(is.t, is.writer(), r, headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: partition, Offset: r.Offset}, Group: group, Attempts: 1, Class: class, Fingerprint: "f",
		Message: "service unavailable", Reason: headers.ReasonTerminal, FirstFailedAt: failed, FailedAt: failed,
	})
}

// bury writes the letter of a record.
func bury(t *testing.T, cl *kgo.Client, r *kgo.Record, m headers.Meta) {
	t.Helper()
	done := make(chan error, 1)
	dlq.NewWriter(cl, r.Topic+".dlq").Write(t.Context(), r, m, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// outageAt makes n dead letters of a service, which stays broken.
func outageAt(t *testing.T, k *consumertest.Kafka, n int) *station {
	t.Helper()
	is := &station{t: t, k: k, calls: map[int64]int{}}
	is.broken.Store(true)
	k.CreateTopic("orders", 1)
	k.Run(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}, Breaker: consumer.Breaker{Off: true}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			is.mu.Lock()
			is.calls[consumer.DeliveryOf(ctx, r).Original.Offset]++
			is.mu.Unlock()
			if is.broken.Load() {
				return classify.Terminal(classify.As(errors.New("service unavailable"), "http.503"))
			}
			is.done.Add(1)
			return nil
		},
	})
	is.fail(n)
	return is
}

func (is *station) fail(n int) {
	is.t.Helper()
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Topic: "orders", Value: []byte(`{"card":"4111"}`)})
	}
	is.failWith(records...)
}

// failWith makes dead letters of records.
func (is *station) failWith(records ...*kgo.Record) {
	is.t.Helper()
	for _, r := range is.k.Produce(records...) {
		is.k.DeadLettered(r, headers.ReasonTerminal)
	}
}

// soonRefreshed is the interval of refreshes in tests that await within seconds what one finds.
const soonRefreshed = 10 * time.Second

// serve runs a server until the test ends, or until stop is called.
func (is *station) serve(cfg serve.Config, more ...kgo.Opt) (stop func()) {
	is.t.Helper()
	cfg.Refresh = cmp.Or(cfg.Refresh, 30*time.Second) // hours pass
	cfg.Kafka = append(is.k.Opts(), more...)
	s, err := serve.New(cfg, slog.New(slog.NewTextHandler(io.MultiWriter(is.t.Output(), &is.log), nil)))
	if err != nil {
		is.t.Fatal(err)
	}
	is.Server = s
	return runUntil(is.t, s)
}

// ask sends a request of this machine, and decodes the answer.
func (is *station) ask(method, path, body string, into any) int {
	is.t.Helper()
	answer := send(is.t, is.Server, method, "/api/v1"+path, body)
	text, err := io.ReadAll(answer.Body)
	if into != nil && err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		is.t.Fatalf("%s %s: %d, %s: %v", method, path, answer.StatusCode, text, err)
	}
	return answer.StatusCode
}

// get returns what the API answers to a request for a list or a thing.
func ask[T any](is *station, path string) (got T) {
	is.t.Helper()
	if code := is.ask(http.MethodGet, path, "", &got); code != http.StatusOK {
		is.t.Fatalf("GET %s: %d, %+v", path, code, got)
	}
	return got
}

// knowsTheLetter waits until the server has read the one letter that is open.
func (is *station) knowsTheLetter(header ...string) {
	is.t.Helper()
	is.within(time.Minute, "the letter is known", func() bool {
		answer := send(is.t, is.Server, http.MethodGet, "/api/v1/topics/orders.dlq", "", header...)
		var topic api.Topic
		return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&topic) == nil && topic.Known != nil && topic.Open == 1
	})
}

// within waits until something is so, for a virtual time.
func (is *station) within(most time.Duration, what string, so func() bool) {
	is.t.Helper()
	for end := time.Now().Add(most); !so(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			is.t.Fatalf("after %v: not %s", most, what)
		}
	}
}

package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// More incidents begin at once than a receiver has room for: a shared service is down. Each is told
// in the end, and none counts as told before.
func TestAlerter_TellsOfMoreIncidentsThanAReceiverHasRoomFor(t *testing.T) {
	t.Parallel()
	told := make(chan struct{}, 10)
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told <- struct{}{} }))
	defer h.Close()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pager, err := notify.New("pager", "generic+"+h.URL, 2, log)
	if err != nil {
		t.Fatal(err)
	}
	a := &alerter{
		cfg: &Config{}, log: log, receivers: []receiver{{Receiver{Name: "pager"}, pager}}, followed: map[incidentKey]*followed{},
		answers: make(chan answer),
	}
	topics := map[string]*watch.Topic{}
	sendAll := func() {
		for key, f := range a.followed {
			a.send(key, f, nil)
		}
	}
	count := func() (waiting, refused, told int) {
		for _, f := range a.followed {
			switch {
			case !f.Awaits("pager"):
				told++
			case f.refused:
				refused++
			default:
				waiting++
			}
		}
		return waiting, refused, told
	}
	for _, name := range []string{"a.dlq", "b.dlq", "c.dlq", "d.dlq", "e.dlq"} {
		topics[name] = &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: name}}
		topics[name].Unledgered.Store(true) // notes are no matter here
		a.followed[incidentKey{name, "open"}] = &followed{Follower: incident.Follower{State: incident.State{Severity: incident.Page, Since: time.Now()}}, asked: map[string]bool{}}
	}
	sendAll()
	sendAll()
	if waiting, refused, told := count(); waiting != 2 || refused != 3 || told != 0 {
		t.Errorf("%d wait, %d are refused and %d told, want 2, 3 and 0", waiting, refused, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		pager.Run(ctx)
		close(ended)
	}()
	for range a.followed {
		got := <-a.answers
		a.answered(t.Context(), topics[got.topic], got)
		<-told
		sendAll()
	}
	if waiting, refused, all := count(); all != len(a.followed) || len(told) > 0 {
		t.Errorf("%d wait, %d are refused and %d told, and %d were told twice", waiting, refused, all, len(told))
	}
	cancel()
	<-ended
}

// A server ends, and has not read yet what receivers answered. All that they accepted counts as
// told.
func TestAlerter_ReadsAllAnswersBeforeItEnds(t *testing.T) {
	t.Parallel()
	cl, err := kgo.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	a := &alerter{cfg: &Config{}, log: slog.Default(), followed: map[incidentKey]*followed{}, writer: newNoteWriter(cl), answers: make(chan answer, 100)}
	of := &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: "a.dlq"}}
	of.Unledgered.Store(true) // notes are no matter here
	for n := range cap(a.answers) {
		key := incidentKey{"a.dlq", strconv.Itoa(n)}
		a.followed[key] = &followed{Follower: incident.Follower{State: incident.State{Since: time.Now()}}}
		a.answers <- answer{incidentKey: key, receiver: "pager"}
	}
	a.close(t.Context(), func(string) *watch.Topic {
		runtime.Gosched() // it may find meanwhile that the receivers have ended
		return of
	})
	for key, f := range a.followed {
		if f.Awaits("pager") {
			t.Errorf("%s does not count as told", key.kind)
		}
	}
}

// refusals is a log that passes on when a receiver had no room.
type refusals struct {
	slog.Handler
	came chan struct{}
}

func (r refusals) Handle(ctx context.Context, line slog.Record) error {
	if strings.Contains(line.Message, "waits for room") {
		r.came <- struct{}{}
	}
	return r.Handler.Handle(ctx, line)
}

// A receiver with as many messages as it has room for is down, and an incident begins. When there
// is room again, the server tells of it by itself.
func TestAlerter_TellsWhenThereIsRoomAgain(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	opts := []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}
	cl, err := kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	written := make(chan error, 1)
	dlq.NewWriter(cl, "orders.dlq").Write(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}, headers.Meta{
		Original: headers.Position{Topic: "orders"}, Group: "billing", Attempts: 1, Class: "http.503", Reason: headers.ReasonTerminal, FirstFailedAt: time.Now(), FailedAt: time.Now(),
	}, func(err error) { written <- err })
	if err := <-written; err != nil {
		t.Fatal(err)
	}

	tried, down, told := make(chan struct{}, 2000), make(chan struct{}), make(chan struct{}, 10)
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tried <- struct{}{}
		<-down
		if text, _ := io.ReadAll(r.Body); strings.Contains(string(text), "orders.dlq") {
			told <- struct{}{}
		}
	}))
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("generic+"+h.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	log := refusals{slog.NewTextHandler(t.Output(), nil), make(chan struct{}, 10)}
	s, err := New(Config{
		Kafka: opts, Refresh: time.Second, Notify: []Receiver{{Name: "pager", URLFile: file}},
		Topics: []Topic{{Match: "*", Alerts: Thresholds{WarnOpen: 1, PageOpen: -1, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}},
	}, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	for s.receivers[0].Send(notify.Message{Title: "earlier", Done: func(error) {}}) {
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	<-tried // the first message is out of the queue, and makes room
	for s.receivers[0].Send(notify.Message{Title: "earlier", Done: func(error) {}}) {
	}
	<-log.came
	close(down)
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was told")
	}
}

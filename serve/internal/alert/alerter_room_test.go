package alert

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// More incidents begin at once than a receiver has room for: a shared service is down. The receiver
// gets each in the end, and none counts as accepted before.
func TestAlerter_NotifiesOfMoreIncidentsThanAReceiverHasRoomFor(t *testing.T) {
	t.Parallel()
	delivered := make(chan struct{}, 10)
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered <- struct{}{} }))
	defer h.Close()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pager, err := notify.New("pager", "generic+"+h.URL, 2, log)
	if err != nil {
		t.Fatal(err)
	}
	a := &Alerter{
		cfg: Config{Log: log, Receivers: []Receiver{{Receiver: pager, Name: "pager"}}}, followed: map[incidentKey]*followed{},
		answers: make(chan answer),
	}
	topics := map[string]*watch.Topic{}
	a.cfg.Topic = func(name string) *watch.Topic { return topics[name] }
	sendAll := func() {
		for key, f := range a.followed {
			a.send(key, f, nil)
		}
	}
	count := func() (waiting, refused, accepted int) {
		for _, f := range a.followed {
			switch {
			case !f.Awaits("pager"):
				accepted++
			case f.refused:
				refused++
			default:
				waiting++
			}
		}
		return waiting, refused, accepted
	}
	for _, name := range []string{"a.dlq", "b.dlq", "c.dlq", "d.dlq", "e.dlq"} {
		topics[name] = &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: name}}
		topics[name].Unledgered.Store(true) // notes are no matter here
		a.followed[incidentKey{name, "open"}] = &followed{Follower: incident.Follower{State: incident.State{Severity: incident.Page, Since: time.Now()}}, asked: map[string]bool{}}
	}
	sendAll()
	sendAll()
	if waiting, refused, accepted := count(); waiting != 2 || refused != 3 || accepted != 0 {
		t.Errorf("%d wait, %d are refused and %d accepted, want 2, 3 and 0", waiting, refused, accepted)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		pager.Run(ctx)
		close(ended)
	}()
	for range a.followed {
		got := <-a.answers
		a.answered(t.Context(), got)
		<-delivered
		sendAll()
	}
	if waiting, refused, all := count(); all != len(a.followed) || len(delivered) > 0 {
		t.Errorf("%d wait, %d are refused and %d accepted, and %d came twice", waiting, refused, all, len(delivered))
	}
	cancel()
	<-ended
}

// A server ends, and has not read yet what receivers answered. All messages that they accepted
// count.
func TestAlerter_ReadsAllAnswersBeforeItEnds(t *testing.T) {
	t.Parallel()
	of := &watch.Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: "a.dlq"}}
	of.Unledgered.Store(true) // notes are no matter here
	topic := func(string) *watch.Topic {
		runtime.Gosched() // it may find meanwhile that the receivers have ended
		return of
	}
	a := &Alerter{cfg: Config{Log: slog.Default(), Topic: topic}, followed: map[incidentKey]*followed{}, answers: make(chan answer, 100)}
	for n := range cap(a.answers) {
		key := incidentKey{"a.dlq", strconv.Itoa(n)}
		a.followed[key] = &followed{Follower: incident.Follower{State: incident.State{Since: time.Now()}}}
		a.answers <- answer{incidentKey: key, receiver: "pager"}
	}
	a.Close(t.Context())
	for key, f := range a.followed {
		if f.Awaits("pager") {
			t.Errorf("%s does not count as accepted", key.kind)
		}
	}
}

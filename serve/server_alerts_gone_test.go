package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
)

// pager is a receiver of notifications that servers in virtual time reach.
type pager struct {
	urlFile string
	refuses atomic.Bool // all messages, for good
	asked   atomic.Int32

	mu  sync.Mutex
	got []string
}

// newPager is called outside of virtual time: no connection to it may stay open within.
func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{urlFile: filepath.Join(t.TempDir(), "url")}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.asked.Add(1); p.refuses.Load() {
			http.Error(w, "no such <b>channel</b>", http.StatusNotFound)
			return
		}
		var m struct{ Title, Key string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, m.Key+" "+m.Title)
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	if err := os.WriteFile(p.urlFile, []byte("generic+"+server.URL+"?template=json"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// received returns the messages about something.
func (p *pager) received(about string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if strings.Contains(m, about) {
			all = append(all, m)
		}
	}
	return all
}

// open returns the begun incidents that are not over, as a pager has them.
func (p *pager) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := map[string]bool{}
	for _, m := range p.got {
		key, title, _ := strings.Cut(m, " ")
		if open[key] = !strings.HasPrefix(title, "[over] "); !open[key] {
			delete(open, key)
		}
	}
	return len(open)
}

func (p *pager) config() serve.Config {
	return serve.Config{
		Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 5, PageOpen: 10, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}},
		Notify: []serve.Receiver{{Name: "pager", URLFile: p.urlFile}},
	}
}

// A dead-letter topic with an incident is deleted. Its incident is over: once, though two servers
// run. The topic comes back, with the ledger that stayed: its next incident is sent.
func TestServer_TheIncidentOfATopicThatIsGoneIsOver(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders", "bills")
		is.lettersOf("orders", 12)
		is.serve(p.config())
		is.serve(p.config())
		is.within(2*time.Minute, "the incident is sent", func() bool { return len(p.received("[page] orders.dlq")) == 1 })
		time.Sleep(time.Minute)
		k.DeleteTopic("orders.dlq")
		is.within(3*time.Minute, "it is over", func() bool { return p.open() == 0 })
		if over := p.received("[over] "); len(over) != 1 || !strings.HasSuffix(over[0], "orders.dlq: 12 letters open: the topic is gone, or hidden from the server") {
			t.Errorf("received %q", over)
		}
		if n := is.log.count(`a dead-letter topic is gone, or the server may not see it any more; its letters and runs are not shown, and nobody is told of it" topic=orders.dlq`); n != 2 {
			t.Errorf("two servers log %d times that the topic is gone", n)
		}
		time.Sleep(5 * time.Minute)
		k.CreateTopic("orders.dlq", 1)
		is.lettersOf("orders", 12)
		is.within(3*time.Minute, "the next incident is sent", func() bool { return len(p.received("[page] orders.dlq")) == 2 })
		if n := is.log.count(`a dead-letter topic came" topic=orders.dlq`); n != 2 {
			t.Errorf("two servers log %d times that the topic came", n)
		}
		time.Sleep(5 * time.Minute)
		if over := p.received("[over] "); len(over) != 1 || p.open() != 1 {
			t.Errorf("received %q", over)
		}
	})
}

// Another server owns one of two topics from now on. It goes on with the incident. If the topics
// and their ledgers were recreated, it knows of none: then the server that sent it ends it.
func TestServer_AnotherOwnerLeavesNoIncidentOpen(t *testing.T) {
	t.Parallel()
	for name, recreated := range map[string]bool{"the topics stay": false, "the topics are recreated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPager(t)
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := towns(t, k, "orders", "bills")
				is.lettersOf("orders", 12)
				is.lettersOf("bills", 12)
				is.serve(p.config())
				is.within(2*time.Minute, "the incidents are sent", func() bool { return p.open() == 2 })
				time.Sleep(time.Minute)
				if recreated {
					for _, topic := range []string{"orders.dlq", "orders.dlq.ledger", "bills.dlq", "bills.dlq.ledger"} {
						k.DeleteTopic(topic)
						k.CreateTopic(topic, 1)
					}
				}
				is.serve(p.config())
				time.Sleep(10 * time.Minute)
				switch over := p.received("[over] "); {
				case recreated && (p.open() != 0 || len(over) != 2):
					t.Errorf("%d incidents go on, and received is %q", p.open(), over)
				case !recreated && len(over) > 0:
					t.Errorf("received %q", over)
				}
				if begun := p.received("[page] "); len(begun) != 2 {
					t.Errorf("received %q", begun)
				}
				var owners []string
				for _, topic := range []string{"orders.dlq", "bills.dlq"} {
					if strings.Contains(get(t, is.Server, "/metrics"), `siding_dead_letters_unread{messaging_destination_name="`+topic+`"}`) {
						owners = append(owners, topic)
					}
				}
				if len(owners) != 1 {
					t.Errorf("the second server owns %v, want one topic", owners)
				}
			})
		})
	}
}

// A topic is away for less than a minute, and then has letters again, so its incident goes on. No
// receiver gets it anew, though its ledger was away, too.
func TestServer_ATopicThatComesBackSoonGoesOnWithItsIncident(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		is.lettersOf("orders", 12)
		is.serve(p.config())
		is.within(2*time.Minute, "the incident is sent", func() bool { return p.open() == 1 })
		time.Sleep(time.Minute)
		k.DeleteTopic("orders.dlq")
		k.DeleteTopic("orders.dlq.ledger")
		is.within(time.Minute, "the topic is gone", func() bool { return is.log.count("a dead-letter topic is gone") == 1 })
		k.CreateTopic("orders.dlq", 1)
		k.CreateTopic("orders.dlq.ledger", 1)
		is.lettersOf("orders", 12)
		is.within(time.Minute, "the topic came", func() bool { return is.log.count("a dead-letter topic came") == 1 })
		time.Sleep(5 * time.Minute)
		if all := p.received(""); len(all) != 1 {
			t.Errorf("received %q", all)
		}
		p.mu.Lock()
		p.got = nil
		p.mu.Unlock()
		is.serve(p.config()) // from the new ledger
		time.Sleep(5 * time.Minute)
		if all := p.received(""); len(all) > 0 {
			t.Errorf("another server sends %q", all)
		}
	})
}

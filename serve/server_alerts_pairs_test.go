package serve_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// notifies is the configuration of a server with receivers.
func notifies(to ...*pager) serve.Config {
	cfg := to[0].config()
	cfg.Notify = nil
	for i, p := range to {
		cfg.Notify = append(cfg.Notify, serve.Receiver{Name: string(rune('a' + i)), URLFile: p.urlFile})
	}
	return cfg
}

// calm is a configuration by whose thresholds no incident lasts.
func calm(cfg serve.Config) serve.Config {
	cfg.Topics = []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: -1, PageOpen: -1, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}}
	return cfg
}

// mute is a configuration without receivers.
func mute(cfg serve.Config) serve.Config {
	cfg.Notify = nil
	return cfg
}

func inGroup(cfg serve.Config, group string) serve.Config {
	cfg.Group = group
	return cfg
}

// at is a configuration of a server that people reach under a URL.
func at(cfg serve.Config, url string) serve.Config {
	cfg.URL = url
	return cfg
}

// Servers come after one another, or are there at once, and are configured differently. Each
// receiver gets an incident once, and once that it is over, by the key that it knows. The first one
// without receivers noted that people were notified, and so no receiver was.
func TestServer_PairsThatAreConfiguredDifferently(t *testing.T) {
	t.Parallel()
	type step struct {
		of    func(a, b *pager) serve.Config
		stays bool // beside the next one
	}
	both := func(a, b *pager) serve.Config { return notifies(a, b) }
	first := func(a, _ *pager) serve.Config { return notifies(a) }
	none := func(a, _ *pager) serve.Config { return mute(notifies(a)) }
	for name, c := range map[string]struct {
		steps []step
		a, b  int // messages that they get until the last server runs
		open  bool
	}{
		"none, then one":                   {[]step{{of: none}, {of: first}}, 1, 0, true},
		"none in another group beside one": {[]step{{func(a, b *pager) serve.Config { return inGroup(none(a, b), "look") }, true}, {of: first}}, 1, 0, true},
		"another group of its own beside one": {[]step{
			{func(_, b *pager) serve.Config { return inGroup(notifies(b), "other") }, true},
			{of: first},
			{of: func(a, _ *pager) serve.Config { return calm(notifies(a)) }},
		}, 2, 1, false},
		"one, then another beside it":              {[]step{{of: first}, {of: both}}, 1, 1, true},
		"both, then both":                          {[]step{{of: both}, {of: both}}, 1, 1, true},
		"one, and it is over, then another beside": {[]step{{of: first}, {of: func(a, _ *pager) serve.Config { return calm(notifies(a)) }}, {of: func(a, b *pager) serve.Config { return calm(notifies(a, b)) }}}, 2, 0, false},
		"one, and it is over for none, then one":   {[]step{{of: first}, {of: func(a, b *pager) serve.Config { return calm(none(a, b)) }}, {of: func(a, _ *pager) serve.Config { return calm(notifies(a)) }}}, 2, 0, false},
		"one, and it is over at another URL":       {[]step{{of: func(a, _ *pager) serve.Config { return at(notifies(a), "https://a.example.com/x") }}, {of: func(a, _ *pager) serve.Config { return calm(at(notifies(a), "https://b.example.com")) }}}, 2, 0, false},
		"one, and none beside it, and one again":   {[]step{{first, true}, {of: none}, {of: first}}, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newPager(t), newPager(t)
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := towns(t, k, "orders")
				is.lettersOf("orders", 12)
				for _, s := range c.steps {
					stop := is.serve(s.of(a, b))
					time.Sleep(5 * time.Minute)
					if !s.stays {
						stop()
					}
				}
				if got := a.received(""); len(got) != c.a || (a.open() > 0) != c.open {
					t.Errorf("the first receiver got %q, want %d messages, and that it is on: %v", got, c.a, c.open)
				}
				if got := b.received(""); len(got) != c.b {
					t.Errorf("the second receiver got %q, want %d messages", got, c.b)
				}
			})
		})
	}
}

// A server was suspended, and another one owned its topic meanwhile and notified of an incident.
// The first one wakes, takes itself for the owner until its group says otherwise, and notifies no
// receiver again.
func TestServer_NotifiesOfNothingThatAnotherServerDid(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		is.serve(notifies(p))
		is.lettersOf("orders", 6)
		is.within(2*time.Minute, "the incident is sent", func() bool { return len(p.received("[warn] ")) == 1 })
		time.Sleep(time.Minute)
		is.note("alert/open", map[string]any{"v": 1, "severity": "page", "text": "12 letters open", "since": time.Now(), "changed": time.Now(), "told": true, "by": "another"})
		time.Sleep(time.Minute) // it is read before the letters
		is.lettersOf("orders", 6)
		time.Sleep(5 * time.Minute)
		if got := p.received(""); len(got) != 1 {
			t.Errorf("sent again: %q", got)
		}
	})
}

// A note of an older version says that people were notified, and not whom. They are not notified
// again, and get the end.
func TestServer_ReadsNotesOfOlderVersions(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		is.lettersOf("orders", 12)
		note := `{"v":1,"severity":"page","text":"12 letters open","since":"2026-11-22T01:40:00Z","changed":"2026-11-22T01:40:00Z","told":true,"by":"old"}`
		k.Produce(ledgerrecord.Run("orders.dlq.ledger", "serve/alert/open", []byte(note)))
		stop := is.serve(inGroup(notifies(p), "mine")) // it has no note of its own yet
		time.Sleep(5 * time.Minute)
		stop()
		if got := p.received(""); len(got) > 0 {
			t.Errorf("sent again: %q", got)
		}
		stop = is.serve(calm(inGroup(notifies(p), "mine")))
		time.Sleep(5 * time.Minute)
		stop()
		if got := p.received("[over] "); len(got) != 1 {
			t.Errorf("received %q", got)
		}
	})
}

// The steps of "Set up in ten minutes": a look without a configuration, and then the page's own one
// with a receiver. The receiver gets all that is wrong by then, also of what the look saw.
func TestServer_TheSetUpOfThePageNotifies(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(page), "\n## Set up in ten minutes\n")
	yaml := regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindStringSubmatch(steps)
	if len(yaml) < 2 || !strings.Contains(yaml[1], "url-env: CHAT_URL") {
		t.Fatalf("the page's configuration is %q", yaml)
	}
	file := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(file, []byte(yaml[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPager(t)
	url, err := os.ReadFile(p.urlFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CHAT_URL", string(url))
	cfg, err := serve.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "payments")
		is.lettersOf("payments", 12)
		look := is.serve(serve.Config{})
		is.within(2*time.Minute, "the look sees incidents", func() bool { return is.log.count("an incident of a dead-letter topic") > 1 })
		time.Sleep(time.Minute)
		look()
		is.serve(cfg)
		time.Sleep(5 * time.Minute)
		for _, about := range []string{"payments.dlq: 12 letters open", "payments.dlq: the first letters of "} {
			if got := p.received(about); len(got) != 1 {
				t.Errorf("of %q came %q, want once", about, got)
			}
		}
	})
}

// A receiver refuses a message for good: the channel is gone. The message is given up at once, for
// this receiver only, and the metrics, the API and the pages say so. The server's next start has a
// URL that works: the receiver gets what goes on.
func TestServer_SaysWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	a, b := newPager(t), newPager(t)
	a.refuses.Store(true)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		is.lettersOf("orders", 12)
		stop := is.serve(notifies(a, b))
		const given = `siding_notifications_given_up_total{messaging_destination_name="orders.dlq",siding_receiver_name=`
		is.within(2*time.Minute, "it is given up", func() bool {
			return strings.Contains(get(t, is.Server, "/metrics"), given+`"a"} 1`) && strings.Contains(get(t, is.Server, "/metrics"), given+`"b"} 0`)
		})
		said := func() []string { return ask[api.Topic](is, "/topics/orders.dlq").Unnotified }
		is.within(time.Minute, "the API says so", func() bool { return len(said()) == 1 })
		if got := said()[0]; !strings.Contains(got, "Receiver a was not notified of an incident (12 letters open): it answered 404 Not Found") {
			t.Errorf("the API says %q", got)
		}
		for _, path := range []string{"/", "/topics/orders.dlq"} {
			if page := get(t, is.Server, path); !strings.Contains(page, "Receiver a was not notified") || strings.Contains(page, "<b>channel") {
				t.Errorf("the page %s says %s", path, page)
			}
		}
		time.Sleep(10 * time.Minute)
		if n := a.asked.Load(); n != 1 || len(b.received("")) != 1 {
			t.Errorf("the receiver was asked %d times, and the other one received %q", n, b.received(""))
		}
		stop()
		a.refuses.Store(false)
		is.serve(notifies(a, b))
		is.within(2*time.Minute, "it is sent", func() bool { return len(a.received("[page] ")) == 1 })
		is.within(time.Minute, "the API says nothing", func() bool { return len(said()) == 0 })
		if len(b.received("")) != 1 {
			t.Errorf("the other one received %q", b.received(""))
		}
	})
}

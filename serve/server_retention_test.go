package serve_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/client"
)

func retention(r serve.Retention) serve.Config {
	return serve.Config{Topics: []serve.Topic{{Match: "orders*", Retention: &r}}}
}

// watched runs a server until it has read all topics.
func (c *cluster) watched(cfg serve.Config) *serve.Server {
	c.T.Helper()
	s, _ := c.run(cfg)
	eventually(c.T, "the topic is judged", func() bool {
		return strings.Contains(get(c.T, s, "/metrics"), `siding_dead_letters_held{messaging_destination_name="orders.dlq"}`)
	})
	return s
}

// By the clock, and by one of two servers, the oldest letters go into an archive, and then from the
// topic. The ledger has that, and an import brings them back once.
func TestRetention_ArchivesAndDeletesByTheClock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	c.fail("orders", "decode", 8)
	c.fail("bills", "decode", 8)
	c.Discard("orders.dlq")
	c.Discard("bills.dlq")
	dir := t.TempDir()
	cfg := retention(serve.Retention{MaxCount: 2, Archive: dir, Every: time.Second})
	a, _ := c.run(cfg)
	b, _ := c.run(cfg)
	count := func(s *serve.Server, metric string) bool {
		return strings.Contains(get(t, s, "/metrics"), metric+`{messaging_destination_name="orders.dlq"} 6`)
	}
	eventually(t, "one server deleted 6 letters", func() bool {
		return count(a, "siding_dead_letters_pruned_total") != count(b, "siding_dead_letters_pruned_total")
	})
	if count(a, "siding_dead_letters_archived_total") == count(b, "siding_dead_letters_archived_total") {
		t.Error("not one server archived 6 letters")
	}
	if n, others := c.Held("orders.dlq"), c.Held("bills.dlq"); n != 2 || others != 8 {
		t.Errorf("%d letters stay, want 2; %d of the topic without retention, want 8", n, others)
	}
	eventually(t, "one archive is left", func() bool {
		all, err := os.ReadDir(dir + "/orders.dlq")
		return err == nil && len(all) == 1
	})
	records := c.Prunes("orders.dlq")
	if len(records) != 1 || records[0].By != "retention" || records[0].Why != "max-age 4320h, max-count 2" || records[0].Letters != 6 || records[0].Deleted.IsZero() {
		t.Fatalf("the ledger has %+v", records)
	}
	if n := c.Import("bills.dlq", records[0].Archive, archive.S3{}); n != 6 {
		t.Errorf("%d letters are imported, want 6", n)
	}
	c.Import("bills.dlq", dir+"/orders.dlq/", archive.S3{})
	sum, err := dlq.NewLedger("bills.dlq", "bills.dlq.ledger", c.Opts...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
	if err != nil || sum.Open != 6 || sum.Duplicates != 6 {
		t.Errorf("imported twice, %d are open and %d duplicates, %v; want 6 and 6", sum.Open, sum.Duplicates, err)
	}
}

// Open letters hold up those behind them, unless they may go. What the dry run says is what is
// done.
func TestRetention_DryRunIsWhatIsDone(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		c := newCluster(t, "orders")
		cl := c.clientOf(c.watched(retention(serve.Retention{MaxAge: 30 * 24 * time.Hour, Open: open, Every: time.Hour})), "")
		const day = 24 * time.Hour
		c.WriteOld("orders.dlq", 90*day, 80*day, 70*day, day)
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...)
		for _, offset := range []int64{0, 2} {
			if _, err := l.Discard(t.Context(), dlq.Filter{Ranges: []dlq.Range{dlq.At(0, offset)}}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := cl.TryRetention(t.Context(), "orders.dlq")
		if err != nil || want.Limits == "" {
			t.Fatal(want, err)
		}
		if stays := c.Held("orders.dlq"); stays != 4 || len(c.Prunes("orders.dlq")) > 0 {
			t.Errorf("after the dry run %d letters stay, want 4", stays)
		}
		if open && (want.Letters != 3 || want.Open != 1 || want.Held != 0) || !open && (want.Letters != 1 || want.Open != 0 || want.Held != 2) {
			t.Errorf("with open %v it would be %+v", open, want)
		}
		did, err := cl.ApplyRetention(t.Context(), "orders.dlq")
		if err != nil || did.Letters != want.Letters || did.Open != want.Open || did.Discarded != want.Discarded || did.Held != want.Held || len(did.Until) != len(want.Until) {
			t.Errorf("it was %+v, %v; announced were %+v", did, err, want)
		}
		if stays := c.Held("orders.dlq"); int64(stays) != 4-want.Letters {
			t.Errorf("%d letters stay, and %d were to be deleted", stays, want.Letters)
		}
		if records := c.Prunes("orders.dlq"); len(records) != 1 || records[0].By != "local" || records[0].Letters != want.Letters || records[0].Open != want.Open {
			t.Errorf("the ledger has %+v", records)
		}
	}
}

func TestRetention_NeedsAConfiguredTopic(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s := c.watched(retention(serve.Retention{}))
	if _, err := s.DryRunRetention(t.Context(), "bills.dlq"); !errors.Is(err, serve.ErrNoRetention) {
		t.Errorf("a topic without retention: %v", err)
	}
	if _, err := c.clientOf(s, "").TryRetention(t.Context(), "bills.dlq"); !client.IsProblem(err, api.NoRetention) {
		t.Errorf("over the API: %v", err)
	}
	if _, err := s.ApplyRetention(t.Context(), "nothing.dlq", "ada"); err == nil || !strings.Contains(err.Error(), `no dead-letter topic "nothing.dlq"`) {
		t.Errorf("no topic: %v", err)
	}
}

// The storage says nothing, so the retention by the clock goes on. Whoever asks for another one is
// answered in the time of the request, with what goes on.
func TestRetention_WaitsForAnotherNoLongerThanARequest(t *testing.T) {
	for _, key := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(key, "test")
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	began, ends := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-ends
	}))
	t.Cleanup(silent.Close)
	c := newCluster(t, "orders")
	c.WriteOld("orders.dlq", 2*time.Hour)
	cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3 = archive.S3{Endpoint: silent.URL}
	s, _ := c.run(cfg)
	t.Cleanup(func() { close(ends) })
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/topics/orders.dlq/retention", nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
		s.Handler().ServeHTTP(w, r)
		answered <- w
	}()
	select {
	case w := <-answered:
		if text := w.Body.String(); w.Code != http.StatusGatewayTimeout || !strings.Contains(text, string(api.Timeout)) || !strings.Contains(text, "orders.dlq: another retention of the topic goes on") {
			t.Errorf("it was answered with %d, %s", w.Code, text)
		}
	case <-time.After(20 * time.Second):
		t.Error("no answer, long after the time of the request")
	}
	if n := c.Held("orders.dlq"); n != 1 {
		t.Errorf("%d letters stay, want 1", n)
	}
}

// Kafka's own retention may come first. What it is about to take is archived once, open letters
// too.
func TestRetention_ArchivesBeforeKafkaDeletes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "again")
	kept := "3600000" // an hour, so letters are archived in its last quarter
	if _, err := kadm.NewClient(c.Client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: &kept}}, "orders.dlq"); err != nil {
		t.Fatal(err)
	}
	c.WriteOld("orders.dlq", 58*time.Minute, 57*time.Minute, 50*time.Minute, 40*time.Minute, 10*time.Minute)
	dir := t.TempDir()
	s := c.watched(retention(serve.Retention{Archive: dir, Every: time.Hour}))
	shows(t, s, `siding_dead_letters_archived_total{messaging_destination_name="orders.dlq"} 3`)
	if n := c.Held("orders.dlq"); n != 5 {
		t.Errorf("%d letters stay, want 5", n)
	}
	if n := c.Import("again.dlq", dir+"/", archive.S3{}); n != 3 {
		t.Errorf("the archive has %d letters, want 3", n)
	}
	eventually(t, "the note was read", func() bool {
		did, err := s.DryRunRetention(t.Context(), "orders.dlq")
		return err == nil && did.Expiring == 0
	})
	did, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada")
	if err != nil || did.Expiring != 0 || len(did.Archives) > 0 || did.Letters != 0 {
		t.Errorf("once more it was %+v, %v", did, err)
	}
}

// A folder that cannot be written is reported by a metric, and the letters stay.
func TestRetention_CountsFailures(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.WriteOld("orders.dlq", 2*time.Hour)
	s := c.watched(retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: os.DevNull + "/folder", Every: time.Hour}))
	shows(t, s, `siding_retention_failures_total{messaging_destination_name="orders.dlq"} 1`)
	if n := c.Held("orders.dlq"); n != 1 {
		t.Errorf("%d letters stay, want 1", n)
	}
}

package serve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/client"
)

// held returns how many letters are in a dead-letter topic.
func (c *cluster) held(topic string) (n int) {
	c.t.Helper()
	for _, err := range dlq.Read(c.t.Context(), topic, dlq.Filter{}, dlq.Cursor{}, c.opts...) {
		if err != nil {
			c.t.Fatal(err)
		}
		n++
	}
	return n
}

// discard discards all letters of a topic.
func (c *cluster) discard(topic string) {
	c.t.Helper()
	l := dlq.NewLedger(topic, topic+".ledger", c.opts...)
	if _, err := l.Discard(c.t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		c.t.Fatal(err)
	}
}

// old writes letters to the first partition that are as old as that.
func (c *cluster) old(topic string, ages ...time.Duration) {
	c.t.Helper()
	for _, age := range ages {
		r := &kgo.Record{Topic: topic, Timestamp: time.Now().Add(-age), Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
		if err := c.cl.ProduceSync(c.t.Context(), r).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) pruned(topic string) []dlq.PruneRecord {
	c.t.Helper()
	all, err := dlq.NewLedger(topic, topic+".ledger", c.opts...).PruneRecords(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// imports imports an archive, and returns the number of its letters.
func (c *cluster) imports(topic, location string, s archive.S3) int64 {
	c.t.Helper()
	r, err := archive.Open(c.t.Context(), location, s)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	n, err := dlq.Import(c.t.Context(), topic, r, dlq.ImportOptions{}, c.opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func retention(r serve.Retention) serve.Config {
	return serve.Config{Topics: []serve.Topic{{Match: "orders*", Retention: &r}}}
}

// watched runs a server until it has read all topics.
func (c *cluster) watched(cfg serve.Config) *serve.Server {
	c.t.Helper()
	s, _ := c.run(cfg)
	eventually(c.t, "the topic is judged", func() bool {
		return strings.Contains(get(c.t, s, "/metrics"), `siding_dead_letters_held{messaging_destination_name="orders.dlq"}`)
	})
	return s
}

// By the clock, and by one of two servers, the oldest letters go into an archive, and then from the
// topic. The ledger tells of it, and an import brings them back once.
func TestRetention_ArchivesAndDeletesByTheClock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	c.fail("orders", "decode", 8)
	c.fail("bills", "decode", 8)
	c.discard("orders.dlq")
	c.discard("bills.dlq")
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
	if n, others := c.held("orders.dlq"), c.held("bills.dlq"); n != 2 || others != 8 {
		t.Errorf("%d letters stay, want 2; %d of the topic without retention, want 8", n, others)
	}
	eventually(t, "one archive is left", func() bool {
		all, err := os.ReadDir(dir + "/orders.dlq")
		return err == nil && len(all) == 1
	})
	told := c.pruned("orders.dlq")
	if len(told) != 1 || told[0].By != "retention" || told[0].Why != "max-age 4320h, max-count 2" || told[0].Letters != 6 || told[0].Deleted.IsZero() {
		t.Fatalf("the ledger tells of %+v", told)
	}
	if n := c.imports("bills.dlq", told[0].Archive, archive.S3{}); n != 6 {
		t.Errorf("%d letters are imported, want 6", n)
	}
	c.imports("bills.dlq", dir+"/orders.dlq/", archive.S3{})
	sum, err := dlq.NewLedger("bills.dlq", "bills.dlq.ledger", c.opts...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
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
		s := c.watched(retention(serve.Retention{MaxAge: 30 * 24 * time.Hour, Open: open, Every: time.Hour}))
		const day = 24 * time.Hour
		c.old("orders.dlq", 90*day, 80*day, 70*day, day)
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
		for _, offset := range []int64{0, 2} {
			if _, err := l.Discard(t.Context(), dlq.Filter{Ranges: []dlq.Range{dlq.At(0, offset)}}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := s.DryRunRetention(t.Context(), "orders.dlq")
		if err != nil {
			t.Fatal(err)
		}
		if stays := c.held("orders.dlq"); stays != 4 || len(c.pruned("orders.dlq")) > 0 {
			t.Errorf("after the dry run %d letters stay, want 4", stays)
		}
		if open && (want.Letters != 3 || want.Open != 1 || want.Held != 0) || !open && (want.Letters != 1 || want.Open != 0 || want.Held != 2) {
			t.Errorf("with open %v it would be %+v", open, want)
		}
		did, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada")
		if err != nil || did.Letters != want.Letters || did.Open != want.Open || did.Discarded != want.Discarded || did.Held != want.Held {
			t.Errorf("it was %+v, %v; announced were %+v", did, err, want)
		}
		if stays := c.held("orders.dlq"); int64(stays) != 4-want.Letters {
			t.Errorf("%d letters stay, and %d were to be deleted", stays, want.Letters)
		}
		if told := c.pruned("orders.dlq"); len(told) != 1 || told[0].By != "ada" || told[0].Letters != want.Letters || told[0].Open != want.Open {
			t.Errorf("the ledger tells of %+v", told)
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
	if _, err := s.ApplyRetention(t.Context(), "nothing.dlq", "ada"); err == nil || !strings.Contains(err.Error(), `no dead-letter topic "nothing.dlq"`) {
		t.Errorf("no topic: %v", err)
	}
}

// storage is S3 in the process, with the bucket letters. It refuses all requests from a number on.
func storage(t *testing.T, refuseFrom *atomic.Int64) archive.S3 {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(key, value)
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("letters"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuseFrom.Add(-1) <= 0 {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, `<Error><Code>AccessDenied</Code><Message>refused</Message></Error>`, http.StatusForbidden)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return archive.S3{Endpoint: server.URL}
}

// Whichever request to the storage is the first that fails, nothing is deleted.
func TestRetention_AFailedArchiveDeletesNothing(t *testing.T) {
	var from atomic.Int64
	from.Store(1 << 30)
	st := storage(t, &from)
	c := newCluster(t, "orders", "again")
	cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3 = st
	s := c.watched(cfg)
	const letters = 10
	for range letters {
		c.old("orders.dlq", 2*time.Hour)
	}
	failures := int64(0)
	for ; ; failures++ {
		from.Store(failures + 1)
		did, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada")
		if err == nil {
			if did.Letters != letters || len(did.Archives) != 1 {
				t.Errorf("it was %+v", did)
			}
			break
		}
		if !strings.Contains(err.Error(), "nothing was deleted: archive: ") {
			t.Errorf("request %d: %v", failures+1, err)
		}
		if n := c.held("orders.dlq"); n != letters || len(c.pruned("orders.dlq")) > 0 {
			t.Fatalf("request %d: %d of %d letters stay, and the ledger has %+v", failures+1, n, letters, c.pruned("orders.dlq"))
		}
	}
	if failures < 2 { // the upload and the reading; package archive tries uploads of several parts
		t.Errorf("%d requests failed, want at least 2", failures)
	}
	from.Store(1 << 30)
	told := c.pruned("orders.dlq")
	if c.held("orders.dlq") != 0 || len(told) != 1 || !strings.HasPrefix(told[0].Archive, "s3://letters/dead/orders.dlq/20") {
		t.Fatalf("%d letters stay, and the ledger has %+v", c.held("orders.dlq"), told)
	}
	if n := c.imports("again.dlq", told[0].Archive, st); n != letters {
		t.Errorf("%d letters are imported, want %d", n, letters)
	}
}

// A letter is reopened, or a run begins, while the letters are archived: they stay, and no archive
// of them does.
func TestRetention_LettersThatStayHaveNoArchive(t *testing.T) {
	var none atomic.Int64
	none.Store(1 << 30)
	st := storage(t, &none)
	at, err := url.Parse(st.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, "orders")
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
	var written, removed atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPut:
			written.Add(1)
			if _, err := l.Reopen(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.ReopenOptions{By: "ada", Why: "test"}); err != nil {
				t.Error(err)
			}
		case http.MethodDelete:
			removed.Add(1)
		}
		httputil.NewSingleHostReverseProxy(at).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	st.Endpoint = front.URL
	cfg := retention(serve.Retention{MaxAge: time.Hour, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3 = st
	s := c.watched(cfg)
	c.old("orders.dlq", 2*time.Hour, 2*time.Hour)
	c.discard("orders.dlq")
	if _, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada"); !errors.Is(err, dlq.ErrChanged) || c.held("orders.dlq") != 2 {
		t.Errorf("%d letters stay, want 2: %v", c.held("orders.dlq"), err)
	}
	if r, err := archive.Open(t.Context(), "s3://letters/dead/orders.dlq/", st); err == nil {
		_ = r.Close() // nothing was read
		t.Errorf("an archive of letters that stay is left; %d were written, %d removed", written.Load(), removed.Load())
	}
	if written.Load() != 1 {
		t.Errorf("%d archives were written, want 1", written.Load())
	}
}

// Two servers own a topic for a moment, and both archive its letters before one deletes them. Its
// archive is left alone. Where Kafka deleted the letters, or some of them, the archive stays.
func TestRetention_LettersThatAnotherDeletedHaveOneArchive(t *testing.T) {
	var none atomic.Int64
	none.Store(1 << 30)
	st := storage(t, &none)
	at, err := url.Parse(st.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for byKafka, want := range map[int64]struct{ archives, letters int64 }{0: {0, 2}, 1: {1, 4}, 2: {1, 2}} {
		c := newCluster(t, "orders")
		folder := "s3://letters/" + strconv.FormatInt(byKafka, 10)
		cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: folder, Every: 24 * time.Hour})
		cfg.S3 = st
		other := c.watched(cfg)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httputil.NewSingleHostReverseProxy(at).ServeHTTP(w, r)
			if r.Method != http.MethodPut {
				return
			}
			offsets := kadm.Offsets{}
			offsets.AddOffset("orders.dlq", 0, byKafka, -1)
			if _, err := kadm.NewClient(c.cl).DeleteRecords(t.Context(), offsets); err != nil {
				t.Error(err)
			}
			switch byKafka {
			case 1:
				c.old("orders.dlq", 2*time.Hour) // so the other one deletes as many
				fallthrough
			case 0:
				if did, err := other.ApplyRetention(t.Context(), "orders.dlq", "bob"); err != nil || did.Letters != 2 {
					t.Errorf("the other server: %+v, %v", did, err)
				}
			}
		}))
		t.Cleanup(front.Close)
		cfg.S3.Endpoint = front.URL
		s, _ := c.run(cfg)
		eventually(t, "the second server knows the topic", func() bool {
			_, err := s.DryRunRetention(t.Context(), "orders.dlq")
			return err == nil
		})
		c.old("orders.dlq", 2*time.Hour, 2*time.Hour)
		did, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada")
		if err != nil || int64(len(did.Archives)) != want.archives {
			t.Errorf("Kafka deleted %d: it was %+v, %v", byKafka, did, err)
		}
		if n := c.imports("orders.dlq", folder+"/orders.dlq/", st); n != want.letters {
			t.Errorf("Kafka deleted %d: the archives that stay have %d letters, want %d", byKafka, n, want.letters)
		}
	}
}

// The storage says nothing, so the retention by the clock goes on. Whoever asks for another one is
// answered in the time of the request, and told what goes on.
func TestRetention_WaitsForAnotherNoLongerThanARequest(t *testing.T) {
	var none atomic.Int64
	st := storage(t, &none)
	began, ends := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-ends
	}))
	t.Cleanup(silent.Close)
	st.Endpoint = silent.URL
	c := newCluster(t, "orders")
	c.old("orders.dlq", 2*time.Hour)
	cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3 = st
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
	if n := c.held("orders.dlq"); n != 1 {
		t.Errorf("%d letters stay, want 1", n)
	}
}

// Kafka's own retention may come first. What it is about to take is archived once, open letters
// too.
func TestRetention_ArchivesBeforeKafkaDeletes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "again")
	kept := "3600000" // an hour, so letters are archived in its last quarter
	if _, err := kadm.NewClient(c.cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: &kept}}, "orders.dlq"); err != nil {
		t.Fatal(err)
	}
	c.old("orders.dlq", 58*time.Minute, 57*time.Minute, 50*time.Minute, 40*time.Minute, 10*time.Minute)
	dir := t.TempDir()
	s := c.watched(retention(serve.Retention{Archive: dir, Every: time.Hour}))
	shows(t, s, `siding_dead_letters_archived_total{messaging_destination_name="orders.dlq"} 3`)
	if n := c.held("orders.dlq"); n != 5 {
		t.Errorf("%d letters stay, want 5", n)
	}
	if n := c.imports("again.dlq", dir+"/", archive.S3{}); n != 3 {
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

// A folder that cannot be written is told by a metric, and the letters stay.
func TestRetention_TellsOfFailures(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.old("orders.dlq", 2*time.Hour)
	s := c.watched(retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: os.DevNull + "/folder", Every: time.Hour}))
	shows(t, s, `siding_retention_failures_total{messaging_destination_name="orders.dlq"} 1`)
	if n := c.held("orders.dlq"); n != 1 {
		t.Errorf("%d letters stay, want 1", n)
	}
}

// The retention can be asked for, and applied at once, over the API.
func TestServer_RetentionOverTheAPI(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{Topics: []serve.Topic{{Match: "orders*", Retention: &serve.Retention{MaxCount: 2, Open: true, Every: 24 * time.Hour}}}})
	cl := c.clientOf(s, "")
	// It was judged, and is again in a day.
	shows(t, s, `siding_dead_letters_held{messaging_destination_name="orders.dlq"} 0`)
	c.fail("orders", "decode", 6)
	opens(t, cl, "orders.dlq", 6)
	would, err := cl.TryRetention(t.Context(), "orders.dlq")
	if err != nil || would.Letters != 4 || would.Open != 4 || would.Limits == "" {
		t.Fatalf("it would delete %+v, %v", would, err)
	}
	did, err := cl.ApplyRetention(t.Context(), "orders.dlq")
	if err != nil || did.Letters != would.Letters || len(did.Until) != len(would.Until) {
		t.Fatalf("it deleted %+v, %v", did, err)
	}
	opens(t, cl, "orders.dlq", 2)
	if _, err := cl.TryRetention(t.Context(), "bills.dlq"); !client.IsProblem(err, api.NoRetention) {
		t.Errorf("a topic without a retention: %v", err)
	}
}

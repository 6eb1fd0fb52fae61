package storage

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/archive"
)

// retention configures that of the topic orders.dlq.
func retention(r serve.Retention) serve.Config {
	return serve.Config{Topics: []serve.Topic{{Match: "orders*", Retention: &r}}}
}

// Whichever request to the storage is the first that fails, nothing is deleted.
func TestRetention_AFailedArchiveDeletesNothing(t *testing.T) {
	t.Parallel()
	st := start(t)
	c := newCluster(t, "orders", "again")
	cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3 = st.s3()
	s := c.watched(cfg)
	const letters = 10
	for range letters {
		c.WriteOld("orders.dlq", 2*time.Hour)
	}
	failures := 0
	for ; ; failures++ {
		st.refuse(func(n int) bool { return n > failures })
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
		if n := c.Held("orders.dlq"); n != letters || len(c.Prunes("orders.dlq")) > 0 {
			t.Fatalf("request %d: %d of %d letters stay, and the ledger has %+v", failures+1, n, letters, c.Prunes("orders.dlq"))
		}
	}
	if failures < 2 { // the upload and the reading; TestBucket_ has uploads of several parts
		t.Errorf("%d requests failed, want at least 2", failures)
	}
	st.refuse(nil)
	told := c.Prunes("orders.dlq")
	if c.Held("orders.dlq") != 0 || len(told) != 1 || !strings.HasPrefix(told[0].Archive, "s3://letters/dead/orders.dlq/20") {
		t.Fatalf("%d letters stay, and the ledger has %+v", c.Held("orders.dlq"), told)
	}
	if n := c.Import("again.dlq", told[0].Archive, st.s3()); n != letters {
		t.Errorf("%d letters are imported, want %d", n, letters)
	}
}

// A letter is reopened, or a run begins, while the letters are archived: they stay, and no archive
// of them does.
func TestRetention_LettersThatStayHaveNoArchive(t *testing.T) {
	t.Parallel()
	st := start(t)
	at, err := url.Parse(st.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, "orders")
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...)
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
	cfg := retention(serve.Retention{MaxAge: time.Hour, Archive: "s3://letters/dead", Every: time.Hour})
	cfg.S3.Endpoint = front.URL
	s := c.watched(cfg)
	c.WriteOld("orders.dlq", 2*time.Hour, 2*time.Hour)
	c.Discard("orders.dlq")
	if _, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada"); !errors.Is(err, dlq.ErrChanged) || c.Held("orders.dlq") != 2 {
		t.Errorf("%d letters stay, want 2: %v", c.Held("orders.dlq"), err)
	}
	if r, err := archive.Open(t.Context(), "s3://letters/dead/orders.dlq/", st.s3()); err == nil {
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
	t.Parallel()
	st := start(t)
	at, err := url.Parse(st.URL)
	if err != nil {
		t.Fatal(err)
	}
	for byKafka, want := range map[int64]struct{ archives, letters int64 }{0: {0, 2}, 1: {1, 4}, 2: {1, 2}} {
		c := newCluster(t, "orders")
		folder := "s3://letters/" + strconv.FormatInt(byKafka, 10)
		cfg := retention(serve.Retention{MaxAge: time.Hour, Open: true, Archive: folder, Every: 24 * time.Hour})
		cfg.S3 = st.s3()
		other := c.watched(cfg)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httputil.NewSingleHostReverseProxy(at).ServeHTTP(w, r)
			if r.Method != http.MethodPut {
				return
			}
			offsets := kadm.Offsets{}
			offsets.AddOffset("orders.dlq", 0, byKafka, -1)
			if _, err := kadm.NewClient(c.Client).DeleteRecords(t.Context(), offsets); err != nil {
				t.Error(err)
			}
			switch byKafka {
			case 1:
				c.WriteOld("orders.dlq", 2*time.Hour) // so the other one deletes as many
				fallthrough
			case 0:
				if did, err := other.ApplyRetention(t.Context(), "orders.dlq", "bob"); err != nil || did.Letters != 2 {
					t.Errorf("the other server: %+v, %v", did, err)
				}
			}
		}))
		t.Cleanup(front.Close)
		cfg.S3.Endpoint = front.URL
		s := c.run(cfg)
		eventually(t, "the second server knows the topic", func() bool {
			_, err := s.DryRunRetention(t.Context(), "orders.dlq")
			return err == nil
		})
		c.WriteOld("orders.dlq", 2*time.Hour, 2*time.Hour)
		did, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada")
		if err != nil || int64(len(did.Archives)) != want.archives {
			t.Errorf("Kafka deleted %d: it was %+v, %v", byKafka, did, err)
		}
		if n := c.Import("orders.dlq", folder+"/orders.dlq/", st.s3()); n != want.letters {
			t.Errorf("Kafka deleted %d: the archives that stay have %d letters, want %d", byKafka, n, want.letters)
		}
	}
}

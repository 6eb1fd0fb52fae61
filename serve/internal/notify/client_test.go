package notify_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// A proxy in front of a webhook wants a login. Its page of 200 behind a 302 counted as accepted,
// and a 307 carried the message to whatever host it named.
func TestClient_FollowsNoRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var followed atomic.Int32
		virtually(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" {
				followed.Add(1)
				return
			}
			http.Redirect(w, r, "http://localhost:80/login", status)
		}, func(t *testing.T, r *notify.Receiver) {
			err := <-ends(t, r, notify.Message{Title: "t"})
			if err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%d: the message ended with %v, want an error", status, err)
			}
		})
		if n := followed.Load(); n > 0 {
			t.Errorf("%d: %d requests followed it", status, n)
		}
	}
}

// An answer without an end took memory as long as it went on: 2 GB in 30 s.
func TestClient_ReadsABoundedAnswer(t *testing.T) {
	const most, all = 512 << 10, 16 << 20
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		read := make(chan int, 1)
		virtually(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			n := 0
			for n < all {
				more, err := w.Write(make([]byte, 4<<10))
				if n += more; err != nil {
					break
				}
			}
			read <- n
		}, func(t *testing.T, r *notify.Receiver) {
			err := <-ends(t, r, notify.Message{Title: "t"})
			if accepted := err == nil; accepted != (status == http.StatusOK) {
				t.Errorf("%d: the message ended with %v", status, err)
			}
			if n := <-read; n > most {
				t.Errorf("%d: %d bytes of the answer were read, want at most %d", status, n, most)
			}
		})
	}
}

// A webhook accepts, and never ends its answer. It has accepted.
func TestClient_TheStatusIsTheAnswer(t *testing.T) {
	var times atomic.Int32
	virtually(t, func(w http.ResponseWriter, r *http.Request) {
		times.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // the server sees then when the client leaves
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, func(t *testing.T, r *notify.Receiver) {
		begin := time.Now()
		if err := <-ends(t, r, notify.Message{Title: "t"}); err != nil {
			t.Errorf("the message ended with %v", err)
		}
		if took := time.Since(begin); took > 20*time.Second || times.Load() != 1 {
			t.Errorf("it took %v and %d requests", took, times.Load())
		}
	})
}

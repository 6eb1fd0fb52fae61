package notify_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// One message that a receiver refuses held up all later ones for a quarter of an hour. It is given
// up at once where a second try has the same answer, and delays no other in any case.
func TestReceiver_OneThatIsRefusedHoldsUpNoOther(t *testing.T) {
	for status, forGood := range map[int]bool{400: true, 401: true, 403: true, 404: true, 410: true, 413: true, 422: true, 408: false, 429: false, 500: false, 503: false} {
		var times atomic.Int32
		virtually(t, func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			if strings.Contains(string(text), "poison") {
				times.Add(1)
				w.WriteHeader(status)
			}
		}, func(t *testing.T, r *notify.Receiver) {
			poison := ends(t, r, notify.Message{Title: "poison", Key: "a"})
			begin := time.Now()
			if err := <-ends(t, r, notify.Message{Title: "t", Key: "b"}); err != nil || time.Since(begin) > time.Second {
				t.Errorf("%d: the next message took %v: %v", status, time.Since(begin), err)
			}
			err := <-poison
			if err == nil {
				t.Errorf("%d: it was accepted", status)
			}
			switch n, took := times.Load(), time.Since(begin); {
			case forGood && (n != 1 || took > time.Second):
				t.Errorf("%d: it was given up after %d tries and %v, want at once", status, n, took)
			case !forGood && (n < 5 || n > 15 || took < 5*time.Minute || took > 15*time.Minute):
				t.Errorf("%d: it was given up after %d tries and %v, want some over a quarter of an hour", status, n, took)
			}
		})
	}
}

// A webhook that answers after 17 s got a message seven times in four minutes: the next try began
// while the one before went on.
func TestReceiver_OneThatAnswersLateIsToldSeldom(t *testing.T) {
	var times, now, most atomic.Int32
	virtually(t, func(http.ResponseWriter, *http.Request) {
		times.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(17 * time.Second)
		now.Add(-1)
	}, func(t *testing.T, r *notify.Receiver) {
		ended := ends(t, r, notify.Message{Title: "t"})
		time.Sleep(4 * time.Minute)
		if n := times.Load(); n != 1 {
			t.Errorf("it got the message %d times in four minutes, want once", n)
		}
		if err := <-ended; err == nil || most.Load() != 1 {
			t.Errorf("it ended with %v, and %d tries went on at once", err, most.Load())
		}
		if n := times.Load(); n > 4 {
			t.Errorf("it got the message %d times in all", n)
		}
	})
}

// A receiver hangs for an hour. After ten calls that hung it was dead until the next start.
func TestReceiver_OneThatHungIsNotDead(t *testing.T) {
	var hangs atomic.Bool
	hangs.Store(true)
	virtually(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if hangs.Load() {
			<-r.Context().Done() // the client leaves
		}
	}, func(t *testing.T, r *notify.Receiver) {
		for range 30 {
			ends(t, r, notify.Message{Title: "t"})
		}
		time.Sleep(time.Hour)
		hangs.Store(false)
		begin := time.Now()
		select {
		case err := <-ends(t, r, notify.Message{Title: "t"}):
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("an hour after it hung, a message takes %v", took)
		}
	})
}

// An incident is over while its beginning still waits for a receiver that is down. The receiver
// gets the end, and not the beginning after it: a pager would stay open.
func TestReceiver_NewerNewsTakeThePlaceOfOlder(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	var mu sync.Mutex
	var got []string
	virtually(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(text))
	}, func(t *testing.T, r *notify.Receiver) {
		begun := ends(t, r, notify.Message{Title: "begun", Key: "k"})
		other := ends(t, r, notify.Message{Title: "other", Key: "l"})
		time.Sleep(time.Minute)
		over := ends(t, r, notify.Message{Title: "over", Key: "k", Over: true})
		down.Store(false)
		if err := <-begun; !errors.Is(err, notify.ErrDropped) {
			t.Errorf("the beginning ended with %v", err)
		}
		if err := errors.Join(<-over, <-other); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2 || slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, `"title":"begun"`) }) {
			t.Errorf("sent %q", got)
		}
	})
}

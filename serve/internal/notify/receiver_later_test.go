package notify_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// A receiver that has too many messages says when the next one may come. It is not asked before:
// each try in between may put that off.
func TestReceiver_WaitsAsLongAsItIsTold(t *testing.T) {
	var asked atomic.Int32
	virtually(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(t *testing.T, r *notify.Receiver) {
		done := ends(t, r, notify.Message{Title: "x", Key: "k"})
		time.Sleep(119 * time.Second)
		if n := asked.Load(); n != 1 {
			t.Errorf("it was asked %d times within two minutes, want once", n)
		}
		time.Sleep(2 * time.Minute)
		if n := asked.Load(); n != 2 {
			t.Errorf("it was asked %d times, want twice", n)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

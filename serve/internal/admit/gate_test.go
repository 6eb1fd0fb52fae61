package admit

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// A request ends after 30 seconds, and one that may read a whole topic after ten minutes. A stream
// goes on while a client reads it.
func TestGate_HasATimeForEachLength(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		who, err := access.New(nil, nil, nil, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		g := New(who)
		for length, want := range map[access.Length]time.Duration{access.Usual: 30 * time.Second, access.Long: 10 * time.Minute, access.Stream: 0, access.Live: 0} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			ctx, end, err := g.Admit(httptest.NewRecorder(), r, nil, length)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			if ended := ctx.Err() != nil; ended != (want > 0) || ended && (time.Since(begun) != want || ctx.Err() != context.DeadlineExceeded) {
				t.Errorf("a request of length %d ends after %v with %v, want %v", length, time.Since(begun), ctx.Err(), want)
			}
			end()
			if n := len(g.limits.long) + len(g.limits.live); n > 0 {
				t.Errorf("%d senders are under way after length %d", n, length)
			}
		}
	})
}

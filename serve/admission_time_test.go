package serve

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
// goes on while somebody reads it.
func TestAdmission_HasATimeForEachLength(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for length, want := range map[access.Length]time.Duration{access.Usual: 30 * time.Second, access.Long: 10 * time.Minute, access.Stream: 0, access.Live: 0} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			ctx, end, err := s.enter(httptest.NewRecorder(), r, nil, length)
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
			if n := len(s.limits.long) + len(s.limits.live); n > 0 {
				t.Errorf("%d senders are under way after length %d", n, length)
			}
		}
	})
}

// Open metrics, the console's files and the description of the API cost work, and were answered as
// often as anybody asked. Probes are not limited: an orchestrator would end the server.
func TestServer_LimitsHoldForAllPaths(t *testing.T) {
	t.Parallel()
	for path, limited := range map[string]bool{
		"/metrics": true, "/static/none": true, "/api/v1/openapi.yaml": true, "/api/none": true, "/none": true, "/sign-in": true, "/": true, "/api/v1/topics": true,
		"/livez": false, "/readyz": false,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // no second passes
				s, err := New(Config{Access: Access{OpenMetrics: true}}, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				h, refused := s.Handler(), 0
				for range 210 {
					r := httptest.NewRequest(http.MethodGet, path, nil)
					r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, r); w.Code == http.StatusTooManyRequests {
						refused++
					}
				}
				if (refused == 10) != limited || refused > 10 {
					t.Errorf("%d of 210 requests at once are refused", refused)
				}
			})
		})
	}
}

package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// Open metrics, the console's files and the description of the API cost work, and were answered as
// often as any sender asked. Probes are not limited: an orchestrator would end the server.
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

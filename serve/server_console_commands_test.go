package serve_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
)

// The API takes the calls that pages offer for curl, which are in a file of the console's test.
// What begins a run is planned only.
func TestServer_TakesTheCallsThatTheConsoleOffers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../redrive/cmd/redrive/internal/root/testdata/console.golden")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, "orders")
	c.fail("orders", "http.503", 2)
	s, _ := c.run(serve.Config{})
	opens(t, c.clientOf(s, ""), "orders.dlq", 2)
	tried := 0
	for line := range strings.Lines(string(text)) {
		_, rest, isOurs := strings.Cut(strings.TrimSpace(line), `"$API`)
		if !isOurs {
			continue
		}
		tried++
		path, rest, _ := strings.Cut(rest, `"`)
		r := httptest.NewRequest(http.MethodGet, "/api/v1"+path, nil)
		if body, posts := strings.CutPrefix(rest, " -d '"); posts {
			body = strings.ReplaceAll(strings.TrimSuffix(body, "'"), `'\''`, "'")
			r = httptest.NewRequest(http.MethodPost, "/api/v1"+strings.TrimSuffix(path, "/runs")+"/plan", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
		}
		w, _ := visit(t, s, r)
		if refused := strings.Contains(w.Body.String(), "#invalid-request") || strings.Contains(w.Body.String(), "#bad-"); refused || w.Code == http.StatusUnauthorized || w.Code >= 500 {
			t.Errorf("%sis answered with %d: %s", line, w.Code, w.Body)
		}
	}
	if tried < 10 {
		t.Errorf("there are %d calls", tried)
	}
}

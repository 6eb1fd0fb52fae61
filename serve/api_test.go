package serve_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// ask sends a request, and decodes the answer into got if that has the status.
func ask(t *testing.T, s *serve.Server, method, path string, status int, got any, headers ...string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	if got != nil {
		if err := json.Unmarshal(w.Body.Bytes(), got); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
	}
}

// problem is an error of RFC 9457.
type problem struct{ Type, Title, Detail string }

func TestAPI_ListsLettersPageByPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{})
	c.fail("orders", "decode", 30)
	c.fail("orders", "http.503", 40)
	shows(t, s, `siding_dead_letters_open{error_type="http.503",messaging_destination_name="orders.dlq"} 40`)
	var topics []api.Topic
	eventually(t, "both topics are known", func() bool {
		ask(t, s, http.MethodGet, "/api/v1/topics", http.StatusOK, &topics)
		return len(topics) == 2 && topics[0].Known != nil && topics[1].Known != nil
	})
	if topics[0].Topic != "orders.dlq" || topics[0].Open != 70 || topics[0].TopClass != "http.503" || topics[0].Oldest == nil || topics[1].Oldest != nil {
		t.Errorf("the topics are %+v", topics)
	}
	var groups []api.Group
	ask(t, s, http.MethodGet, "/api/v1/topics/orders.dlq/groups", http.StatusOK, &groups)
	if len(groups) != 2 || groups[0].Class != "http.503" || groups[0].Open != 40 || !groups[0].New {
		t.Errorf("the groups are %+v", groups)
	}
	seen := map[[2]int64]bool{}
	cursor, pages := "", 0
	for ; pages == 0 || cursor != ""; pages++ {
		var page api.Letters
		ask(t, s, http.MethodGet, "/api/v1/topics/orders.dlq/letters?class=http.*&limit=15&cursor="+url.QueryEscape(cursor), http.StatusOK, &page)
		for _, l := range page.Letters {
			if l.Class != "http.503" || seen[[2]int64{int64(l.Partition), l.Offset}] {
				t.Errorf("page %d has %+v", pages, l)
			}
			seen[[2]int64{int64(l.Partition), l.Offset}] = true
		}
		cursor = page.Next
	}
	if len(seen) != 40 || pages != 3 {
		t.Errorf("%d letters on %d pages, want 40 on 3", len(seen), pages)
	}
}

// Each error is a problem with a stable type and a text that says what to do; nothing panics.
func TestAPI_BadInputIsAProblem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/api/v1/topics/nobody.dlq":                                   {http.StatusNotFound, "no-topic"},
		"/api/v1/topics/orders":                                       {http.StatusNotFound, "no-topic"},
		"/api/v1/topics/orders.dlq/letters?cursor=x":                  {http.StatusBadRequest, "bad-cursor"},
		"/api/v1/topics/orders.dlq/letters?cursor=v1/bills.dlq/0:1-2": {http.StatusBadRequest, "bad-cursor"},
		"/api/v1/topics/orders.dlq/letters?cursor=v1/orders.dlq/":     {http.StatusBadRequest, "bad-cursor"},
		"/api/v1/topics/orders.dlq/letters?limit=0":                   {http.StatusUnprocessableEntity, ""},
		"/api/v1/topics/orders.dlq/letters?limit=ten":                 {http.StatusUnprocessableEntity, ""},
		"/api/v1/topics/orders.dlq/letters?since=yesterday":           {http.StatusUnprocessableEntity, ""},
	} {
		var p problem
		ask(t, s, http.MethodGet, path, want.status, &p)
		if p.Detail == "" || want.kind != "" && p.Type != "https://github.com/sidingkafka/siding/blob/main/docs/serve.md#"+want.kind {
			t.Errorf("%s: %+v", path, p)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/topics", nil)
	r.Host = "evil.example"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a page of another site: %d, %s", w.Code, w.Body)
	}
}

// A letter has its history; key, headers and value are for readers.
func TestAPI_LetterShowsItsContentToReaders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	hash := func(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
	text := "tokens:\n  - {name: ada, sha256: " + hash("a") + ", grants: [{role: viewer}, {role: reader, topics: [orders*]}]}\n  - {name: bob, sha256: " + hash("b") + ", grants: [{role: viewer}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: file, OpenMetrics: true}})
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
	var l api.LetterDetail
	ask(t, s, http.MethodGet, "/api/v1/topics/orders.dlq/letters/1/0", http.StatusOK, &l, "Authorization", "Bearer a")
	if l.Class != "decode" || l.Message != "it failed" || l.Original.Topic != "orders" || l.Content == nil || l.Content.Value.Text == nil || *l.Content.Value.Text != "v" || l.Content.Key.Text != nil {
		t.Errorf("a reader sees %+v", l)
	}
	ask(t, s, http.MethodGet, "/api/v1/topics/orders.dlq/letters/1/0", http.StatusOK, &l, "Authorization", "Bearer b")
	if l.Content != nil || l.Message == "" {
		t.Errorf("a viewer sees %+v", l)
	}
	ask(t, s, http.MethodGet, "/api/v1/topics/orders.dlq/letters/1/7", http.StatusNotFound, nil, "Authorization", "Bearer a")
	ask(t, s, http.MethodGet, "/api/v1/topics", http.StatusUnauthorized, nil)
	ask(t, s, http.MethodGet, "/api/v1/topics", http.StatusUnauthorized, nil, "Authorization", "Bearer c")
}

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

// A program has a token named ann, a person at the provider is called ann, and the proxy vouches
// for an ann. They were all ann once. The ledger distinguishes them, none gets the run of another
// one's key, and none is held up because another one asks too often.
func TestAccess_DistinguishesIdentitiesOfOneName(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	c := newCluster(t, "orders")
	c.outage(6)
	grants := map[string][]access.Grant{"*": {{Role: access.Operator}}}
	s, _ := c.run(serve.Config{OpenID: oidc.Open, Access: serve.Access{
		TokensFile: tokenFile(t, map[string]string{"ann": "[{role: operator}]"}),
		Proxy:      &access.Proxy{Header: "X-User", From: []string{"127.0.0.1"}, Groups: grants},
		OIDC:       &access.OIDC{Issuer: p.URL, ClientID: "siding", Groups: grants},
	}})
	cl := c.clientOf(s, "ann")
	opens(t, cl, "orders.dlq", 6)
	anns := []struct {
		name   string
		header []string
	}{
		{"token ann", []string{"Authorization", "Bearer ann"}},
		{"proxy ann", []string{"X-User", "ann"}},
		{"openid ann", []string{"Authorization", "Bearer " + p.token("")}},
	}
	for i, ann := range anns {
		var ids [2]string
		for n := range ids {
			body := fmt.Sprintf(`{"filter":{"partition":[%d]},"pace":{"rampMs":-1,"windowMs":200}}`, i)
			answer := send(t, s, http.MethodPost, "/api/v1/topics/orders.dlq/runs", body, append(ann.header, "Idempotency-Key", "k")...)
			var run api.Run
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusAccepted || json.Unmarshal(text, &run) != nil || run.By != ann.name {
				t.Fatalf("%s begins a run: %d, %s, %v", ann.name, answer.StatusCode, text, err)
			}
			ids[n] = run.ID
			ends(t, cl, run)
		}
		if ids[0] != ids[1] {
			t.Errorf("the key of %s began the runs %v", ann.name, ids)
		}
	}
	for i, ann := range anns {
		refused := ""
		for refused == "" {
			// Of what costs least: a busy machine has to send more than the rate allows.
			if answer := send(t, s, http.MethodGet, "/api/v1/topics/none.dlq", "", ann.header...); answer.StatusCode == http.StatusTooManyRequests {
				text, _ := io.ReadAll(answer.Body)
				refused = string(text)
			}
		}
		if !strings.Contains(refused, ann.name+" sends more than") {
			t.Errorf("%s gets %s", ann.name, refused)
		}
		for _, other := range anns[i+1:] {
			if answer := send(t, s, http.MethodGet, "/api/v1/topics", "", other.header...); answer.StatusCode != http.StatusOK {
				t.Errorf("%s asks too often, and %s is answered with %d", ann.name, other.name, answer.StatusCode)
			}
		}
	}
}

// A program gave no logger, and the token file became broken: the next request was a panic.
func TestAccess_BrokenFileNeedsNoLogger(t *testing.T) {
	t.Parallel()
	file := tokenFile(t, map[string]string{"ada": "[{role: viewer}]"})
	s, err := serve.New(serve.Config{Access: serve.Access{TokensFile: file}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("tokens: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if answer := send(t, s, http.MethodGet, "/api/v1/topics", "", "Authorization", "Bearer ada"); answer.StatusCode != http.StatusOK {
		t.Errorf("%d", answer.StatusCode)
	}
}

// Who mounts a server with a provider says what asks it.
func TestNew_NeedsWhatAsksTheProvider(t *testing.T) {
	t.Parallel()
	cfg := serve.Config{Access: serve.Access{OIDC: &access.OIDC{Issuer: "https://login.example.com", ClientID: "siding"}}}
	if err := cfg.Check(); err != nil {
		t.Errorf("the file alone: %v", err)
	}
	if _, err := serve.New(cfg, nil); err == nil || !strings.Contains(err.Error(), "access.oidc: Config.OpenID is not set: it takes oidc.Open of package serve/oidc") {
		t.Errorf("the server: %v", err)
	}
}

package access_test

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

// Whatever people are called, none has the name of one whom the server knows in another way, nor
// one of the server itself: not even one who signed in at the provider as "rule gateway", whom only
// the API refused.
func TestIdentity_NoNameIsOneOfAnotherWay(t *testing.T) {
	t.Parallel()
	names := []string{"ann", "local", "retention", "nobody", "rule gateway", "token ann", "proxy ann", "openid ann"}
	text := "tokens:\n"
	for _, name := range names {
		text += "  - {name: " + name + ", sha256: " + hash("of "+name) + ", grants: [{role: viewer}]}\n"
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, file, text, time.Now())
	tokens, err := access.ReadTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := newPeople(t)
	p.token = func(nonce string) string {
		return p.provider.token(t, "siding", time.Now().Add(time.Hour), map[string]any{"email": "rule gateway", "email_verified": true, "nonce": nonce})
	}
	a, err := access.New(tokens, &access.Proxy{Header: "X-User", From: []string{"10.0.0.1"}}, &access.OIDC{Issuer: p.URL, ClientID: "siding"}, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{"local": "this machine", "nobody": "nobody", "retention": "the server", "rule gateway": "the server"}
	is := func(how string, id *access.Identity, err error) {
		if err != nil {
			t.Errorf("%s: %v", how, err)
			return
		}
		way, _, _ := strings.Cut(how, ": ")
		if before := seen[id.Name]; before != "" || !strings.HasPrefix(id.Name, way+" ") {
			t.Errorf("%s is called %q, as %s", how, id.Name, before)
		}
		seen[id.Name] = how
	}
	for _, name := range names {
		id, err := a.Who(request("10.0.0.2:1", "x", "Authorization", "Bearer of "+name))
		is("token: "+name, id, err)
		id, err = a.Who(request("10.0.0.1:1", "x", "X-User", name))
		is("proxy: "+name, id, err)
		token := p.provider.token(t, "siding", time.Now().Add(time.Hour), map[string]any{"email": name, "email_verified": true})
		id, err = a.Who(request("10.0.0.2:1", "x", "Authorization", "Bearer "+token))
		is("openid: "+name, id, err)
	}
	b, err := access.NewBrowser(a, nil, "https://siding.example.com/admin/", p.secret)
	if err != nil {
		t.Fatal(err)
	}
	jar := map[string]*http.Cookie{}
	state := p.begin(t, b, "", jar)
	browse(func(w http.ResponseWriter, r *http.Request) {
		if _, err := b.Finish(w, r); err != nil {
			t.Error(err)
		}
	}, "https://siding.example.com/admin/sign-in/callback?code=the+code&state="+state, jar)
	if id, err := whoIs(b, jar); err != nil || id.Name != "openid rule gateway" {
		t.Errorf("a session of a user called rule gateway: %+v, %v", id, err)
	}
}

// Two with the same rights see the same, so two with others never have the same text.
func TestIdentity_RightsTellGrantsApart(t *testing.T) {
	t.Parallel()
	one := access.Identity{Grants: []access.Grant{{Role: access.Viewer, Topics: []string{"a b"}}}}
	two := access.Identity{Grants: []access.Grant{{Role: access.Viewer, Topics: []string{"a", "b"}}}}
	if one.Rights() == two.Rights() || one.Rights() == (&access.Identity{}).Rights() {
		t.Errorf("both have the rights %s", one.Rights())
	}
	if _, err := access.New(nil, nil, &access.OIDC{Issuer: "https://x", ClientID: "x", Groups: map[string][]access.Grant{"g": one.Grants}}, oidc.Open, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a pattern with a space is taken")
	}
}

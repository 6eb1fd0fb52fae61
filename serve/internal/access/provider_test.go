package access_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

// provider is an OpenID provider.
type provider struct {
	*httptest.Server
	key   *rsa.PrivateKey
	down  bool
	asked atomic.Int64
	// methods are the authentication methods that it announces. keys answers for its keys, unless
	// it is nil.
	methods []string
	keys    http.HandlerFunc
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.asked.Add(1)
		if p.down {
			http.Error(w, "a page of the provider", http.StatusServiceUnavailable)
			return
		}
		says := map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "id_token_signing_alg_values_supported": []string{"RS256"}}
		if p.methods != nil {
			says["token_endpoint_auth_methods_supported"] = p.methods
		}
		answer(w, says)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		if p.asked.Add(1); p.keys != nil {
			p.keys(w, r)
			return
		}
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// token returns a token of the provider, with claims beside the usual ones.
func (p *provider) token(t *testing.T, audience string, expires time.Time, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.signed(t, signer, audience, expires, claims)
}

func (p *provider) signed(t *testing.T, signer jose.Signer, audience string, expires time.Time, claims map[string]any) string {
	t.Helper()
	text, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: p.URL, Subject: "7", Audience: jwt.Audience{audience}, Expiry: jwt.NewNumericDate(expires), IssuedAt: jwt.NewNumericDate(time.Now())}).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestProvider_TokensOfAnOpenIDProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	a, _ := openID(t, p, access.OIDC{Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}}})
	who := func(token string) (*access.Identity, error) { return a.Who(with(token)) }
	later := time.Now().Add(time.Hour)
	ada := map[string]any{"email": "ada@example.com", "email_verified": true, "groups": []string{"oncall"}}
	if id, err := who(p.token(t, "siding", later, ada)); err != nil || id.Name != "openid ada@example.com" || id.On("x.dlq") != access.Operator {
		t.Errorf("%+v, %v", id, err)
	}
	if id, err := who(p.token(t, "siding", later, nil)); err != nil || id.Name != "openid 7" || id.On("x.dlq") != access.None {
		t.Errorf("without claims: %+v, %v", id, err)
	}
}

// Any sender can send tokens that name keys which the provider does not have. It is asked for its
// keys now and then, and not each time; meanwhile tokens by the keys that it has count.
func TestProvider_AsksTheProviderForKeysSparingly(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	a, err := access.New(nil, nil, &access.OIDC{Issuer: p.URL, ClientID: "siding"}, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	forger, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: newProvider(t).key, KeyID: "2"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	later, began := time.Now().Add(time.Hour), time.Now()
	forged := p.signed(t, forger, "siding", later, nil)
	for range 100 {
		if id, err := a.Who(request("10.0.0.1:1", "x", "Authorization", "Bearer "+forged)); !errors.Is(err, access.ErrNobody) {
			t.Fatalf("%+v, %v", id, err)
		}
	}
	if most := 3 + int64(time.Since(began)/(5*time.Second)); p.asked.Load() > most {
		t.Errorf("the provider was asked %d times, at most %d are right", p.asked.Load(), most)
	}
	if id, err := a.Who(request("10.0.0.1:1", "x", "Authorization", "Bearer "+p.token(t, "siding", later, nil))); err != nil || id.Name != "openid 7" {
		t.Errorf("a token that is right: %+v, %v", id, err)
	}
}

// openID returns an authenticator for a provider, and its log.
func openID(t *testing.T, p *provider, o access.OIDC) (*access.Authenticator, *bytes.Buffer) {
	t.Helper()
	o.Issuer, o.ClientID = p.URL, "siding"
	var log bytes.Buffer
	a, err := access.New(nil, nil, &o, oidc.Open, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return a, &log
}

// with returns a request with a bearer token.
func with(token string) *http.Request {
	return request("10.0.0.1:1", "x", "Authorization", "Bearer "+token)
}

// Some providers send no email_verified, or a text: only true says that an address is the user's
// own. A user who is named by another claim needs none.
func TestProvider_OnlyAVerifiedEmailIsAName(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for _, test := range []struct {
		claim    string
		verified any
		want     string
	}{
		{"", true, "openid ada@example.com"},
		{"", false, "openid 7"},
		{"", nil, "openid 7"},
		{"", "true", "openid 7"},
		{"", "false", "openid 7"},
		{"", 1, "openid 7"},
		{"", []bool{true}, "openid 7"},
		{"email", "false", "openid 7"},
		{"upn", false, "openid ada"},
		{"profile.nick", nil, "openid lace"},
		{"https://example.com/name", nil, "openid spaced"},
		{"profile", nil, "openid 7"},
		{"none", true, "openid 7"},
	} {
		a, _ := openID(t, p, access.OIDC{NameClaim: test.claim})
		claims := map[string]any{"email": "ada@example.com", "upn": "ada", "profile": map[string]any{"nick": "lace"}, "https://example.com/name": "spaced"}
		if test.verified != nil {
			claims["email_verified"] = test.verified
		}
		if id, err := a.Who(with(p.token(t, "siding", time.Now().Add(time.Hour), claims))); err != nil || id.Name != test.want {
			t.Errorf("by %q, verified %#v: %+v, %v, want %s", test.claim, test.verified, id, err, test.want)
		}
	}
}

// Groups are a list, or one text, in a claim of any depth. What has another shape is no group.
func TestProvider_GroupsOfAnyProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for _, test := range []struct {
		claim  string
		claims map[string]any
		want   access.Role
	}{
		{"", map[string]any{"groups": []string{"choir", "oncall"}}, access.Operator},
		{"", map[string]any{"groups": "oncall"}, access.Operator},
		{"", map[string]any{"groups": "oncall choir"}, access.None},
		{"", map[string]any{"groups": "oncal"}, access.None},
		{"", map[string]any{"groups": map[string]any{"oncall": true}}, access.None},
		{"", map[string]any{"groups": []any{7, []string{"oncall"}}}, access.None},
		{"realm_access.roles", map[string]any{"realm_access": map[string]any{"roles": []string{"oncall"}}}, access.Operator},
		{"realm_access.roles", map[string]any{"realm_access.roles": "oncall"}, access.Operator},
		{"realm_access.roles", map[string]any{"realm_access": map[string]any{"roles": map[string]any{}}, "roles": "oncall"}, access.None},
		{"realm_access.roles", map[string]any{"realm_access": "oncall"}, access.None},
		{"a.b.c", map[string]any{"a": map[string]any{"b": map[string]any{"c": "oncall"}}}, access.Operator},
		{"https://example.com/groups", map[string]any{"https://example.com/groups": []string{"oncall"}}, access.Operator},
		{"https://example.com/x.groups", map[string]any{"https://example.com/x": map[string]any{"groups": "oncall"}}, access.Operator},
		{".", map[string]any{"": map[string]any{"": "oncall"}}, access.Operator},
		{"..", map[string]any{"groups": "oncall"}, access.None},
	} {
		a, _ := openID(t, p, access.OIDC{GroupsClaim: test.claim, Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}}})
		if id, err := a.Who(with(p.token(t, "siding", time.Now().Add(time.Hour), test.claims))); err != nil || id.On("x.dlq") != test.want {
			t.Errorf("%q of %v: %+v, %v, want %s", test.claim, test.claims, id, err, test.want)
		}
	}
}

// A provider whose keys cannot be fetched says nothing about a token: its sender is not refused,
// as if the token were wrong, and reads nothing of the page that the provider sent.
func TestProvider_KeysThatCannotBeFetchedRefuseNobody(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "a page of the provider", http.StatusBadGateway)
		},
		"a page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>a page of the provider")) },
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too little": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte(`{"keys":`))
		},
	} {
		p := newProvider(t)
		p.keys = keys
		a, log := openID(t, p, access.OIDC{})
		token := p.token(t, "siding", time.Now().Add(time.Hour), nil)
		for range 6 { // more often than the provider is asked
			if id, err := a.Who(with(token)); err == nil || errors.Is(err, access.ErrNobody) || strings.Contains(err.Error(), "a page of") || strings.Contains(err.Error(), p.URL) {
				t.Errorf("%s: %+v, %v", name, id, err)
			}
		}
		if log := log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, `asked="its keys"`) {
			t.Errorf("%s: the log has %s", name, log)
		}
	}
	p := newProvider(t)
	p.down = true
	a, log := openID(t, p, access.OIDC{})
	if _, err := a.Who(with("x")); err == nil || errors.Is(err, access.ErrNobody) || strings.Contains(err.Error(), "a page of") {
		t.Errorf("without its addresses: %v", err)
	}
	if !strings.Contains(log.String(), "a page of the provider") {
		t.Errorf("the log has %s", log)
	}
}

// A user who is refused asks an operator why. The log says which rule refused, and has no token.
func TestProvider_ARefusalIsLoggedWithItsRule(t *testing.T) {
	t.Parallel()
	p, other := newProvider(t), newProvider(t)
	a, log := openID(t, p, access.OIDC{})
	later := time.Now().Add(time.Hour)
	for name, test := range map[string]struct{ token, rule, says string }{
		"of another client":   {p.token(t, "other", later, nil), "token", "audience"},
		"expired":             {p.token(t, "siding", time.Now().Add(-time.Hour), nil), "token", "expired"},
		"of another provider": {other.token(t, "siding", later, nil), "token", "signature"},
		"junk":                {"a.b.c", "token", "malformed"},
		"without name":        {p.token(t, "siding", later, map[string]any{"sub": ""}), "name", "names nobody"},
		"of no verified name": {p.token(t, "siding", later, map[string]any{"sub": "", "email": "ada@example.com"}), "name", "names nobody"},
		"of an empty name":    {p.token(t, "siding", later, map[string]any{"sub": "", "email": "", "email_verified": true}), "name", "names nobody"},
		"of a long name":      {p.token(t, "siding", later, map[string]any{"sub": strings.Repeat("e", 1001)}), "name", "1001 bytes"},
		"of a long address":   {p.token(t, "siding", later, map[string]any{"email": strings.Repeat("e", 1001), "email_verified": true}), "name", "1001 bytes"},
	} {
		log.Reset()
		if _, err := a.Who(with(test.token)); !errors.Is(err, access.ErrNobody) {
			t.Errorf("%s: %v", name, err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "rule="+test.rule+" ") || !strings.Contains(got, test.says) || !strings.Contains(got, "from=10.0.0.1") || strings.Contains(got, test.token) {
			t.Errorf("%s: the log has %q", name, got)
		}
	}
}

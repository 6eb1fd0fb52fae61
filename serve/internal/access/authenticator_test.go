package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/sidingkafka/siding/serve/internal/access"
)

func request(remote, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.Host = remote, host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Without access control only this machine is answered, and no page of another site that reaches it
// by a name of its own.
func TestAuthenticator_OpenAnswersThisMachineOnly(t *testing.T) {
	t.Parallel()
	a, err := access.New(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"localhost:8642": true, "127.0.0.1:8642": true, "[::1]:8642": true, "localhost": true, "evil.example:8642": false, "10.0.0.1:8642": false, "": false} {
		if _, err := a.Who(request("127.0.0.1:5000", host)); (err == nil) != want {
			t.Errorf("host %q: %v", host, err)
		}
	}
	// A handler that was mounted on a public listener let everybody in who sent the host localhost.
	for remote, want := range map[string]bool{
		"127.8.9.1:5000": true, "[::1]:5000": true, "[::ffff:127.0.0.1]:5000": true,
		"10.0.0.1:5000": false, "192.0.2.1:5000": false, "[2001:db8::1]:5000": false, "@": false, "": false, "127.0.0.1": false,
	} {
		if _, err := a.Who(request(remote, "localhost")); (err == nil) != want {
			t.Errorf("from %q: %v", remote, err)
		}
	}
	// A link on another site opens a page; a picture or a script of that site does not.
	for _, test := range []struct {
		site, dest string
		want       bool
	}{
		{"cross-site", "image", false}, {"cross-site", "empty", false}, {"same-site", "script", false}, {"cross-site", "iframe", false}, {"cross-site", "", false},
		{"cross-site", "document", true}, {"same-origin", "empty", true}, {"none", "document", true},
	} {
		if _, err := a.Who(request("127.0.0.1:5000", "localhost", "Sec-Fetch-Site", test.site, "Sec-Fetch-Dest", test.dest)); (err == nil) != test.want {
			t.Errorf("a %s of %s: %v", test.dest, test.site, err)
		}
	}
	// A proxy on this machine passes on what comes from elsewhere.
	for _, key := range []string{"Forwarded", "Via", "X-Forwarded-For", "x-forwarded-host", "X-Forwarded-Proto", "X-Real-IP"} {
		for _, value := range []string{"127.0.0.1", ""} {
			if _, err := a.Who(request("127.0.0.1:5000", "localhost", key, value)); !errors.Is(err, access.ErrNobody) {
				t.Errorf("with %s %q: %v", key, value, err)
			}
		}
	}
}

// The header of a proxy counts from the proxy only.
func TestAuthenticator_ProxyIsBelievedByItsAddress(t *testing.T) {
	t.Parallel()
	a, err := access.New(nil, &access.Proxy{
		Header: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups", From: []string{"10.0.0.0/8", "::1"},
		Groups: map[string][]access.Grant{"*": {{Role: access.Viewer}}, "payments": {{Role: access.Operator, Topics: []string{"pay*"}}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Who(request("10.1.2.3:5000", "x", "X-Forwarded-User", "ada", "X-Forwarded-Groups", "dev, payments"))
	if err != nil || id.Name != "ada" || id.On("pay.dlq") != access.Operator || id.On("orders.dlq") != access.Viewer {
		t.Errorf("%+v, %v", id, err)
	}
	for _, remote := range []string{"11.0.0.1:5000", "127.0.0.1:1", "[::2]:1", "junk"} {
		if id, err := a.Who(request(remote, "x", "X-Forwarded-User", "ada")); !errors.Is(err, access.ErrNobody) {
			t.Errorf("%s: %+v, %v", remote, id, err)
		}
	}
	// A proxy that adds its header to that of the client believes the client.
	twice := request("10.1.2.3:5000", "x", "X-Forwarded-User", "root")
	twice.Header.Add("X-Forwarded-User", "ada")
	if id, err := a.Who(twice); !errors.Is(err, access.ErrNobody) {
		t.Errorf("two names: %+v, %v", id, err)
	}
	// Nobody is called as the server calls itself in ledgers.
	for _, name := range []string{"retention", "rule gateway"} {
		if id, err := a.Who(request("10.1.2.3:5000", "x", "X-Forwarded-User", name)); !errors.Is(err, access.ErrNobody) {
			t.Errorf("%q: %+v, %v", name, id, err)
		}
	}
	if _, err := a.Who(request("[::ffff:10.1.1.1]:5", "x", "X-Forwarded-User", "ada")); err != nil {
		t.Errorf("an IPv4 address in IPv6: %v", err)
	}
}

// provider is an OpenID provider.
type provider struct {
	*httptest.Server
	key  *rsa.PrivateKey
	down bool
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
		if p.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer(w, map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
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
	text, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: p.URL, Subject: "7", Audience: jwt.Audience{audience}, Expiry: jwt.NewNumericDate(expires), IssuedAt: jwt.NewNumericDate(time.Now())}).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAuthenticator_TokensOfAnOpenIDProvider(t *testing.T) {
	t.Parallel()
	p, other := newProvider(t), newProvider(t)
	a, err := access.New(nil, nil, &access.OIDC{Issuer: p.URL, ClientID: "siding", Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}}})
	if err != nil {
		t.Fatal(err)
	}
	who := func(token string) (*access.Identity, error) {
		return a.Who(request("10.0.0.1:1", "x", "Authorization", "Bearer "+token))
	}
	later := time.Now().Add(time.Hour)
	ada := map[string]any{"email": "ada@example.com", "groups": []string{"oncall"}}
	if id, err := who(p.token(t, "siding", later, ada)); err != nil || id.Name != "ada@example.com" || id.On("x.dlq") != access.Operator {
		t.Errorf("%+v, %v", id, err)
	}
	if id, err := who(p.token(t, "siding", later, nil)); err != nil || id.Name != "7" || id.On("x.dlq") != access.None {
		t.Errorf("without claims: %+v, %v", id, err)
	}
	for name, token := range map[string]string{
		"of another client":   p.token(t, "other", later, ada),
		"expired":             p.token(t, "siding", time.Now().Add(-time.Hour), ada),
		"of another provider": other.token(t, "siding", later, ada),
		"junk":                "a.b.c",
		"empty":               "",
	} {
		if id, err := who(token); !errors.Is(err, access.ErrNobody) {
			t.Errorf("a token that is %s: %+v, %v", name, id, err)
		}
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func() (*access.Authenticator, error){
		"no address": func() (*access.Authenticator, error) {
			return access.New(nil, &access.Proxy{Header: "X", From: []string{"ten"}}, nil)
		},
		"no header": func() (*access.Authenticator, error) {
			return access.New(nil, &access.Proxy{From: []string{"10.0.0.1"}}, nil)
		},
		"no issuer": func() (*access.Authenticator, error) { return access.New(nil, nil, &access.OIDC{ClientID: "x"}) },
		"no role": func() (*access.Authenticator, error) {
			return access.New(nil, nil, &access.OIDC{Issuer: "x", ClientID: "x", Groups: map[string][]access.Grant{"a": {{}}}})
		},
	} {
		if _, err := made(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

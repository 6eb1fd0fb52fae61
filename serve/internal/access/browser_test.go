package access_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// browse sends a request with cookies, and returns the cookies that a browser has afterwards.
func browse(do func(http.ResponseWriter, *http.Request), target string, jar map[string]*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for _, c := range jar {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	do(w, r)
	for _, c := range w.Result().Cookies() {
		if jar[c.Name] = c; c.MaxAge < 0 {
			delete(jar, c.Name)
		}
	}
	return w
}

// whoIs returns whom a browser's cookies name.
func whoIs(b *access.Browser, jar map[string]*http.Cookie) (id *access.Identity, err error) {
	browse(func(_ http.ResponseWriter, r *http.Request) { id, err = b.Who(r) }, "https://siding.example.com/", jar)
	return id, err
}

// A session by a token ends when the token is withdrawn, when somebody signs out, and when its
// cookie was changed.
func TestBrowser_SignsInWithAToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Now()
	write(t, file, "tokens: [{name: ada, sha256: "+hash("secret")+", grants: [{role: operator}]}]\n", now)
	tokens, err := access.ReadTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.New(tokens, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := access.NewBrowser(who, []byte("a key"), "https://siding.example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	jar := map[string]*http.Cookie{}
	signIn := func(b *access.Browser, token string) error {
		var err error
		browse(func(w http.ResponseWriter, r *http.Request) { err = b.WithToken(w, r, token) }, "https://siding.example.com/sign-in", jar)
		return err
	}
	if _, err := whoIs(b, jar); !errors.Is(err, access.ErrNobody) {
		t.Errorf("without a session: %v", err)
	}
	for _, wrong := range []string{"", "other"} {
		if err := signIn(b, wrong); !errors.Is(err, access.ErrNobody) || len(jar) != 0 {
			t.Errorf("the token %q: %v, %v", wrong, err, jar)
		}
	}
	if err := signIn(b, " secret\n"); err != nil {
		t.Fatal(err)
	}
	c := jar["__Host-siding-session"]
	if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || strings.Contains(c.Value, "secret") {
		t.Fatalf("the cookie is %+v", c)
	}
	if id, err := whoIs(b, jar); err != nil || id.Name != "token ada" || id.On("x") != access.Operator {
		t.Errorf("signed in: %+v, %v", id, err)
	}
	same, err := access.NewBrowser(who, []byte("a key"), "https://siding.example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := whoIs(same, jar); err != nil || id.Name != "token ada" {
		t.Errorf("another server with the key: %+v, %v", id, err)
	}
	other, err := access.NewBrowser(who, nil, "https://siding.example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := whoIs(other, jar); !errors.Is(err, access.ErrNobody) {
		t.Errorf("a server with another key: %+v, %v", id, err)
	}
	for _, changed := range []string{"", "x", c.Value[:len(c.Value)-2] + "xx", strings.Repeat("a", 5000)} {
		if id, err := whoIs(b, map[string]*http.Cookie{c.Name: {Name: c.Name, Value: changed}}); !errors.Is(err, access.ErrNobody) {
			t.Errorf("a changed cookie: %+v, %v", id, err)
		}
	}
	browse(b.SignOut, "https://siding.example.com/sign-out", jar)
	if len(jar) != 0 {
		t.Errorf("signed out: %v", jar)
	}
	if err := signIn(b, "secret"); err != nil {
		t.Fatal(err)
	}
	write(t, file, "tokens: [{name: bob, sha256: "+hash("b")+", grants: [{role: viewer}]}]\n", now.Add(time.Second))
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := whoIs(b, jar); errors.Is(err, access.ErrNobody) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a token that was withdrawn still counts")
		}
	}
}

// people signs somebody in at a provider: the browser leaves for it, and comes back with a code.
type people struct {
	*provider
	nonce, challenge, code string
	secret                 string
	token                  func(nonce string) string
}

func newPeople(t *testing.T) *people {
	p := &people{provider: newProvider(t), code: "the code", secret: "s3cret"}
	p.token = func(nonce string) string {
		return p.provider.token(t, "siding", time.Now().Add(time.Hour), map[string]any{"email": "ada@example.com", "groups": []string{"oncall", "choir"}, "nonce": nonce})
	}
	p.Config.Handler.(*http.ServeMux).HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		_, secret, _ := r.BasicAuth()
		if r.FormValue("code") != p.code || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge || secret != p.secret {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token(p.nonce)})
	})
	return p
}

// begin sends a browser to the provider, and returns the state that it comes back with.
func (p *people) begin(t *testing.T, b *access.Browser, back string, jar map[string]*http.Cookie) (state string) {
	t.Helper()
	browse(func(w http.ResponseWriter, r *http.Request) {
		address, err := b.Begin(w, r, back)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		if !strings.HasPrefix(address, p.URL+"/auth?") || q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != "https://siding.example.com/admin/sign-in/callback" || q.Get("scope") != "openid email profile" {
			t.Errorf("the browser is sent to %s", address)
		}
		state, p.nonce, p.challenge = q.Get("state"), q.Get("nonce"), q.Get("code_challenge")
	}, "https://siding.example.com/admin/sign-in/provider", jar)
	return state
}

// People sign in at a provider by the code flow with PKCE. What was not begun by the same browser,
// or is not for this sign-in, signs nobody in.
func TestBrowser_SignsInAtAProvider(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	who, err := access.New(nil, nil, &access.OIDC{Issuer: p.URL, ClientID: "siding", Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}, "*": {{Role: access.Viewer, Topics: []string{"a*"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := access.NewBrowser(who, nil, "https://siding.example.com/admin/", p.secret)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(query url.Values, jar map[string]*http.Cookie) (back string, err error) {
		browse(func(w http.ResponseWriter, r *http.Request) { back, err = b.Finish(w, r) }, "https://siding.example.com/admin/sign-in/callback?"+query.Encode(), jar)
		return back, err
	}
	jar := map[string]*http.Cookie{}
	state := p.begin(t, b, "/topics/orders.dlq?class=a", jar)
	back, err := finish(url.Values{"state": {state}, "code": {p.code}}, jar)
	if err != nil || back != "/topics/orders.dlq?class=a" {
		t.Fatalf("back at %q: %v", back, err)
	}
	id, err := whoIs(b, jar)
	if err != nil || id.Name != "openid ada@example.com" || id.On("x.dlq") != access.Operator || id.On("a.dlq") != access.Operator {
		t.Errorf("signed in: %+v, %v", id, err)
	}
	if len(jar) != 1 {
		t.Errorf("the browser keeps %v", jar)
	}
	for name, try := range map[string]func(jar map[string]*http.Cookie) url.Values{
		"of another browser": func(jar map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", map[string]*http.Cookie{})}, "code": {p.code}}
		},
		"with another state": func(jar map[string]*http.Cookie) url.Values {
			p.begin(t, b, "", jar)
			return url.Values{"state": {"x"}, "code": {p.code}}
		},
		"with another code": func(jar map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {"x"}}
		},
		"with another verifier": func(jar map[string]*http.Cookie) url.Values {
			state := p.begin(t, b, "", jar)
			p.challenge = "x"
			return url.Values{"state": {state}, "code": {p.code}}
		},
		"with another nonce": func(jar map[string]*http.Cookie) url.Values {
			state := p.begin(t, b, "", jar)
			p.nonce = "x"
			return url.Values{"state": {state}, "code": {p.code}}
		},
		"that was refused": func(jar map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", jar)}, "error": {"access_denied"}}
		},
	} {
		jar := map[string]*http.Cookie{}
		query := try(jar)
		if back, err := finish(query, jar); !errors.Is(err, access.ErrNobody) {
			t.Errorf("a sign-in %s: %q, %v", name, back, err)
		}
		if id, err := whoIs(b, jar); err == nil {
			t.Errorf("a sign-in %s is one of %+v", name, id)
		}
	}
	p.down = true
	other, err := access.New(nil, nil, &access.OIDC{Issuer: p.URL, ClientID: "siding"})
	if err != nil {
		t.Fatal(err)
	}
	b, err = access.NewBrowser(other, nil, "https://siding.example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), ""); err == nil || errors.Is(err, access.ErrNobody) {
		t.Errorf("while the provider is down: %v", err)
	}
}

// No address leads people who signed in to another site.
func TestBack_StaysHere(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "/", "/topics/a?class=b%2Fc&x=//y": "/topics/a?class=b%2Fc&x=//y", "": "", "//evil.example": "", `/\evil.example`: "", "https://evil.example/": "", "evil": "", "javascript:x": "", "/a\nb": "", "/\t/evil.example": "",
	} {
		if got := access.Back(path); got != want {
			t.Errorf("%q leads to %q, want %q", path, got, want)
		}
	}
	for _, address := range []string{"", "siding", "ftp://x", "://"} {
		if _, err := access.NewBrowser(&access.Authenticator{}, nil, address, ""); err == nil {
			t.Errorf("%q is taken for a URL", address)
		}
	}
}

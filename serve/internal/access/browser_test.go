package access_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
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

// A session by a token ends when the token is withdrawn, when its user signs out, and when its
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
	who, err := access.New(tokens, nil, nil, oidc.Open, slog.New(slog.DiscardHandler))
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
	end := "xx"
	if strings.HasSuffix(c.Value, end) {
		end = "yy"
	}
	for _, changed := range []string{"", "x", c.Value[:len(c.Value)-2] + end, strings.Repeat("a", 5000)} {
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

// people signs a user in at a provider: the browser leaves for it, and comes back with a code.
type people struct {
	*provider
	nonce, challenge, code string
	secret                 string
	token                  func(nonce string) string
	sent                   atomic.Int64 // codes that came
	broken                 bool
}

func newPeople(t *testing.T) *people {
	p := &people{provider: newProvider(t), code: "the code", secret: "s3cret"}
	p.token = func(nonce string) string {
		return p.provider.token(t, "siding", time.Now().Add(time.Hour), map[string]any{"email": "ada@example.com", "email_verified": true, "groups": []string{"oncall", "choir"}, "nonce": nonce})
	}
	p.Config.Handler.(*http.ServeMux).HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if p.sent.Add(1); p.broken {
			http.Error(w, "a page of the provider", http.StatusBadGateway)
			return
		}
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		_, secret, basic := r.BasicAuth()
		if method := "client_secret_post"; p.methods != nil && !basic && slices.Contains(p.methods, method) {
			secret = r.PostFormValue("client_secret")
		}
		if r.FormValue("code") != p.code || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge || secret != p.secret {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"a text of the provider"}`))
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

// People sign in at a provider by the code flow with PKCE.
func TestBrowser_SignsInAtAProvider(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	b, _, finish := signsIn(t, p, access.OIDC{Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}, "*": {{Role: access.Viewer, Topics: []string{"a*"}}}}}, p.secret)
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
	p.down = true
	other, err := access.New(nil, nil, &access.OIDC{Issuer: p.URL, ClientID: "siding"}, oidc.Open, slog.New(slog.DiscardHandler))
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

// signsIn returns a browser at a provider, and what finishes a sign-in with a state.
func signsIn(t *testing.T, p *people, o access.OIDC, secret string) (b *access.Browser, log *bytes.Buffer, finish func(query url.Values, jar map[string]*http.Cookie) (string, error)) {
	t.Helper()
	who, log := openID(t, p.provider, o)
	b, err := access.NewBrowser(who, nil, "https://siding.example.com/admin/", secret)
	if err != nil {
		t.Fatal(err)
	}
	return b, log, func(query url.Values, jar map[string]*http.Cookie) (back string, err error) {
		browse(func(w http.ResponseWriter, r *http.Request) { back, err = b.Finish(w, r) }, "https://siding.example.com/admin/sign-in/callback?"+query.Encode(), jar)
		return back, err
	}
}

// Two tabs, restored when the browser began, both sign in. The cookie of the second sign-in was
// that of the first one, which then belonged to "another sign-in".
func TestBrowser_TwoTabsSignInAtOnce(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	b, _, finish := signsIn(t, p, access.OIDC{}, p.secret)
	jar := map[string]*http.Cookie{}
	type tab struct{ state, nonce, challenge, back string }
	var tabs []tab
	for _, back := range []string{"/topics/a.dlq", "/topics/b.dlq"} {
		state := p.begin(t, b, back, jar)
		tabs = append(tabs, tab{state, p.nonce, p.challenge, back})
	}
	for _, is := range tabs {
		p.nonce, p.challenge = is.nonce, is.challenge
		back, err := finish(url.Values{"state": {is.state}, "code": {p.code}}, jar)
		if err != nil || back != is.back {
			t.Errorf("the tab of %s is sent to %q: %v", is.back, back, err)
		}
	}
	if len(jar) != 1 {
		t.Errorf("the browser keeps %v", jar)
	}
	// The answer of one sign-in counts once.
	if _, err := finish(url.Values{"state": {tabs[0].state}, "code": {p.code}}, jar); !errors.Is(err, access.ErrNobody) {
		t.Errorf("a sign-in that is over: %v", err)
	}
}

// However often a user begins to sign in, the browser's requests stay as small as with one long
// cookie, and the last sign-in counts.
func TestBrowser_SignInsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	b, _, finish := signsIn(t, p, access.OIDC{}, p.secret)
	for _, back := range []string{"/", "/topics/orders.dlq?class=" + strings.Repeat("c", 1500), "/topics/orders.dlq?class=" + strings.Repeat("c", 9000)} {
		jar := map[string]*http.Cookie{}
		state := ""
		for range 30 {
			state = p.begin(t, b, back, jar)
			size := 0
			for _, c := range jar {
				size += len(c.Value)
			}
			if size > 3800 {
				t.Fatalf("the browser keeps %d bytes in %d cookies", size, len(jar))
			}
		}
		if _, err := finish(url.Values{"state": {state}, "code": {p.code}}, jar); err != nil {
			t.Errorf("the last sign-in: %v", err)
		}
	}
}

// A code counts once: a provider withdraws what it gave for one that comes twice. The server made
// itself known in the one way, and if that was refused, in the other, with the same code.
func TestBrowser_UsesTheMethodThatTheProviderAnnounces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		methods []string
		secret  string
		says    string // empty if people can sign in
		sent    int64
	}{
		{nil, "s3cret", "", 1},
		{[]string{"client_secret_basic"}, "s3cret", "", 1},
		{[]string{"client_secret_post"}, "s3cret", "", 1},
		{[]string{"private_key_jwt", "client_secret_post", "client_secret_basic"}, "s3cret", "", 1},
		{[]string{"none"}, "", "", 1},
		{[]string{"client_secret_post"}, "", "", 1},
		{nil, "another", "refused the code", 1},
		{[]string{"client_secret_post"}, "another", "refused the code", 1},
		{[]string{"private_key_jwt"}, "s3cret", "its authentication methods", 0},
	} {
		p := newPeople(t)
		if p.methods = test.methods; test.secret == "" {
			p.secret = ""
		}
		b, _, finish := signsIn(t, p, access.OIDC{}, test.secret)
		jar := map[string]*http.Cookie{}
		var err error
		if test.sent == 0 {
			_, err = b.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), "")
		} else {
			_, err = finish(url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}, jar)
		}
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || p.sent.Load() != test.sent {
			t.Errorf("announced %q, with the secret %q: %v, after %d codes; want %q", test.methods, test.secret, err, p.sent.Load(), test.says)
		}
	}
}

// Each rule that refuses a sign-in has a line in the log, and no page quotes the provider. An
// answer without a name begins no session.
func TestBrowser_ARefusedSignInIsLoggedWithItsRule(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	b, log, finish := signsIn(t, p, access.OIDC{}, p.secret)
	own := p.token
	for name, test := range map[string]struct {
		rule, says string
		try        func(jar map[string]*http.Cookie) url.Values
	}{
		"that no browser began": {"state", "another browser", func(map[string]*http.Cookie) url.Values { return url.Values{"state": {"x"}} }},
		"without a state":       {"state", "another browser", func(map[string]*http.Cookie) url.Values { return nil }},
		"of another browser": {"state", "another browser", func(map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", map[string]*http.Cookie{})}, "code": {p.code}}
		}},
		"that the provider refused": {"provider", "access_denied", func(jar map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", jar)}, "error": {"access_denied"}}
		}},
		"with another state": {"state", "another browser", func(jar map[string]*http.Cookie) url.Values {
			p.begin(t, b, "", jar)
			return url.Values{"state": {"x"}, "code": {p.code}}
		}},
		"with another verifier": {"code", "a text of the provider", func(jar map[string]*http.Cookie) url.Values {
			state := p.begin(t, b, "", jar)
			p.challenge = "x"
			return url.Values{"state": {state}, "code": {p.code}}
		}},
		"with another code": {"code", "a text of the provider", func(jar map[string]*http.Cookie) url.Values {
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {"x"}}
		}},
		"without a token": {"id_token", "the scope openid", func(jar map[string]*http.Cookie) url.Values {
			p.token = func(string) string { return "" }
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}
		}},
		"with a wrong token": {"token", "malformed", func(jar map[string]*http.Cookie) url.Values {
			p.token = func(string) string { return "x" }
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}
		}},
		"with another nonce": {"nonce", "another sign-in", func(jar map[string]*http.Cookie) url.Values {
			p.token = func(string) string { return own("x") }
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}
		}},
		"without a name": {"name", "names nobody", func(jar map[string]*http.Cookie) url.Values {
			p.token = func(nonce string) string {
				return p.provider.token(t, "siding", time.Now().Add(time.Hour), map[string]any{"sub": "", "nonce": nonce})
			}
			return url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}
		}},
	} {
		p.token = own
		log.Reset()
		jar := map[string]*http.Cookie{}
		_, err := finish(test.try(jar), jar)
		if !errors.Is(err, access.ErrNobody) || strings.Contains(err.Error(), "a text of") {
			t.Errorf("a sign-in %s: %v", name, err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "rule="+test.rule+" ") || !strings.Contains(got, test.says) {
			t.Errorf("a sign-in %s: the log has %q", name, got)
		}
		if id, err := whoIs(b, jar); err == nil {
			t.Errorf("a sign-in %s is one of %+v", name, id)
		}
	}
	p.token, p.broken = own, true
	jar := map[string]*http.Cookie{}
	if _, err := finish(url.Values{"state": {p.begin(t, b, "", jar)}, "code": {p.code}}, jar); err == nil || errors.Is(err, access.ErrNobody) || strings.Contains(err.Error(), "a page of") {
		t.Errorf("from a provider that is broken: %v", err)
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

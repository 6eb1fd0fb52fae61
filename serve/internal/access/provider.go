package access

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"
)

// OIDC accepts tokens of an OpenID provider.
type OIDC struct {
	// Issuer is the provider's address, below which it has .well-known/openid-configuration.
	// Required.
	Issuer string `yaml:"issuer"`
	// ClientID is the server's id at the provider, which tokens have to be for. Required.
	ClientID string `yaml:"client-id"`
	// ClientSecretEnv is the variable of the environment with the secret by which the provider
	// knows the server, for people who sign in to the console. A public client needs none. Default
	// none.
	ClientSecretEnv string `yaml:"client-secret-env"`
	// ClientSecretFile is a file with that secret, instead of a variable. Default none.
	ClientSecretFile string `yaml:"client-secret-file"`
	// Scopes are what the provider is asked for when people sign in to the console; some providers
	// want groups, too. Default openid, email and profile.
	Scopes []string `yaml:"scopes"`
	// NameClaim is the claim with the name of the person, as in upn, or a.b for what is in an
	// object. Ledgers have it as openid NAME. The email counts if email_verified is true, else sub
	// names the person. Default email.
	NameClaim string `yaml:"name-claim"`
	// GroupsClaim is the claim with the person's groups, a list or one text, as in
	// realm_access.roles. Default groups.
	GroupsClaim string `yaml:"groups-claim"`
	// Groups is what roles groups have; * is everybody. Default none.
	Groups map[string][]Grant `yaml:"groups"`
}

// provider is an OpenID provider. It is safe for concurrent use.
type provider struct {
	*OIDC
	log     *slog.Logger
	address func(*http.Request) string // from which a request comes

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the provider has answered
	endpoint oauth2.Endpoint
	methods  []string      // by which it knows servers
	asking   chan struct{} // closed when it has; nil unless it is being asked
	asked    time.Time
}

// askEvery is how often a provider is asked for its keys: one that did not answer, and one that has
// answered while tokens name keys that it did not have then. askAtOnce is what it is asked at once:
// where its keys are, for them, and for those that it has changed since.
const (
	askEvery  = 5 * time.Second
	askAtOnce = 3
)

// mostAnswer bounds an answer of the provider.
const mostAnswer = 1 << 20

// sparing sends requests to a provider as often as its limit allows, since anybody can send tokens
// that name keys which the provider does not have. Between, its last answer stands, if it was good.
type sparing struct {
	limit *rate.Limiter

	mu   sync.Mutex
	from string // the address of the last good answer
	good []byte // nil if the last answer was none
}

// RoundTrip implements [http.RoundTripper].
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.good == nil || s.from != r.URL.String() {
			return nil, fmt.Errorf("the OpenID provider was asked within %v, and did not answer", askEvery)
		}
		return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.good)), Request: r}, nil
	}
	answer, text, err := fetch(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = nil
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		s.from, s.good = r.URL.String(), text
	}
	return answer, nil
}

// fetch sends a request, and returns the answer with the whole of its body.
func fetch(r *http.Request) (*http.Response, []byte, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, text, err
}

// refuse returns an error that wraps [ErrNobody], and logs it with the rule that refuses. cause is
// for the log only, and may be nil: it may quote the provider.
func (p *provider) refuse(r *http.Request, rule string, cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	attrs := []any{"rule", rule, "why", text, "from", p.address(r)}
	if cause != nil {
		attrs = append(attrs, "error", short(cause))
	}
	p.log.Info("siding: a sign-in or a token of the OpenID provider was refused", attrs...)
	return fmt.Errorf("%w: %s", ErrNobody, text)
}

// down logs that the provider gave no answer of use, and returns an error that quotes none of it.
func (p *provider) down(asked string, cause error) error {
	p.log.Error("siding: the OpenID provider gave no answer of use", "asked", asked, "provider", p.Issuer, "error", short(cause))
	return fmt.Errorf("the OpenID provider gave no answer of use when it was asked for %s: try again; the server's log has its answer", asked)
}

// mostCause bounds what the log has of an answer of the provider, which may be a page.
const mostCause = 500

func short(err error) string {
	text := err.Error()
	return text[:min(len(text), mostCause)]
}

// who returns whom a token of the provider names.
func (p *provider) who(r *http.Request, token string) (*Identity, error) {
	name, groups, _, err := p.claims(r, token)
	if err != nil {
		return nil, err
	}
	return identityOf(byOpenID, name, granted(p.Groups, groups)), nil
}

// unfetched begins the errors of go-oidc about keys that it could not fetch. They have no type.
const unfetched = "failed to verify signature: fetching keys "

// claims returns what a valid token of the provider says.
func (p *provider) claims(r *http.Request, token string) (name string, groups []string, nonce string, err error) {
	v, err := p.ask(r.Context())
	if err != nil {
		return "", nil, "", err
	}
	t, err := v.Verify(r.Context(), token)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), unfetched):
		return "", nil, "", p.down("its keys", err)
	case err != nil:
		return "", nil, "", p.refuse(r, "token", nil, "the token is not valid: %v", err)
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return "", nil, "", p.refuse(r, "claims", nil, "the token's claims cannot be read: %v", err)
	}
	claim := orDefault(p.NameClaim, "email")
	name, _ = claimOf(claims, claim).(string)
	if claim == "email" && claims["email_verified"] != true {
		name = "" // it may be somebody else's
	}
	switch name = orDefault(name, t.Subject); {
	case name == "":
		return "", nil, "", p.refuse(r, "name", nil, "the token has neither the claim %s nor sub, so it names nobody", claim)
	case len(name) > mostName:
		return "", nil, "", p.refuse(r, "name", nil, "the token's name has %d bytes, and %d are the most", len(name), mostName)
	}
	switch is := claimOf(claims, orDefault(p.GroupsClaim, "groups")).(type) {
	case string: // some providers send one group so
		groups = append(groups, is)
	case []any:
		for _, g := range is {
			if text, ok := g.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	return name, groups, t.Nonce, nil
}

// claimOf returns the claim of a name: as it is, or else part by part, from object to object. Names
// of claims may have points of their own, as in https://example.com/groups.
func claimOf(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	for at, c := range name {
		if inner, ok := claims[name[:at]].(map[string]any); ok && c == '.' {
			if v := claimOf(inner, name[at+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

func orDefault(s, by string) string {
	if s == "" {
		return by
	}
	return s
}

// ask returns the verifier, and asks the provider for its keys first. Others wait for the
// answer as long as they like.
func (p *provider) ask(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	for {
		p.mu.Lock()
		verifier, asking := p.verifier, p.asking
		if verifier == nil && asking == nil {
			if time.Since(p.asked) < askEvery {
				p.mu.Unlock()
				return nil, fmt.Errorf("the OpenID provider %s did not answer; it is asked again within %v", p.Issuer, askEvery)
			}
			asking = make(chan struct{})
			p.asking = asking
			p.mu.Unlock()
			return p.discover(ctx, asking)
		}
		p.mu.Unlock()
		if verifier != nil {
			return verifier, nil
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// discover asks the provider for its keys, and closes a channel when it has answered.
func (p *provider) discover(ctx context.Context, asking chan struct{}) (*oidc.IDTokenVerifier, error) {
	// keys are fetched later, too, with this context
	client := &http.Client{Timeout: askEvery, Transport: &sparing{limit: rate.NewLimiter(rate.Every(askEvery), askAtOnce)}}
	is, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), p.Issuer)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(asking)
	p.asking, p.asked = nil, time.Now()
	if err != nil {
		return nil, p.down("its addresses", err)
	}
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := is.Claims(&says); err != nil {
		return nil, p.down("its addresses", err)
	}
	p.endpoint, p.methods = is.Endpoint(), says.Methods
	p.verifier = is.Verifier(&oidc.Config{ClientID: p.ClientID})
	return p.verifier, nil
}

// authStyle returns how a server with a secret makes itself known to a provider that announces
// methods. None announced is client_secret_basic, by OpenID Connect Discovery 1.0, section 3. One
// without a secret has nothing but its id to send.
func authStyle(methods []string, secret string) (oauth2.AuthStyle, error) {
	switch {
	case secret == "" || !slices.Contains(methods, "client_secret_basic") && slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams, nil
	case len(methods) == 0 || slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader, nil
	}
	return 0, fmt.Errorf("the OpenID provider takes a secret neither by client_secret_basic nor by client_secret_post, but by %q", methods)
}

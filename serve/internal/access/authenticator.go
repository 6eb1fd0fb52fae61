package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// ErrNobody reports a request without valid credentials. The error around it says what is wrong.
var ErrNobody = errors.New("access")

// Proxy takes the word of a proxy that has authenticated people.
type Proxy struct {
	// Header is the header with the name of the person, as in X-Forwarded-User. Ledgers have it as
	// proxy NAME. Required.
	Header string `yaml:"header"`
	// GroupsHeader is the header with the person's groups, separated by commas. Default none.
	GroupsHeader string `yaml:"groups-header"`
	// From are the addresses of the proxy, as in 10.0.0.7 or 10.0.0.0/8. From other addresses the
	// headers do not count. Required.
	From []string `yaml:"from"`
	// Groups is what roles groups have; * is everybody. Default none.
	Groups map[string][]Grant `yaml:"groups"`
}

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
	// NameClaim is the claim with the name of the person. Ledgers have it as openid NAME. Default
	// email.
	NameClaim string `yaml:"name-claim"`
	// GroupsClaim is the claim with the person's groups. Default groups.
	GroupsClaim string `yaml:"groups-claim"`
	// Groups is what roles groups have; * is everybody. Default none.
	Groups map[string][]Grant `yaml:"groups"`
}

// Authenticator finds out who sends requests. It is safe for concurrent use.
type Authenticator struct {
	tokens *Tokens
	proxy  *Proxy
	from   []netip.Prefix
	oidc   *OIDC

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the provider has answered
	endpoint oauth2.Endpoint
	asking   chan struct{} // closed when it has; nil unless it is being asked
	asked    time.Time
}

// New returns an authenticator for the ways that are not nil. Without any, each request from this
// machine is one of an admin named local.
func New(tokens *Tokens, proxy *Proxy, provider *OIDC) (*Authenticator, error) {
	a := &Authenticator{tokens: tokens, proxy: proxy, oidc: provider}
	var all []error
	wrong := func(key, format string, args ...any) {
		all = append(all, &yamlfile.KeyError{Key: "access." + key, Problem: fmt.Sprintf(format, args...)})
	}
	if proxy != nil {
		if proxy.Header == "" {
			wrong("proxy.header", "required: the header with the person's name, as in X-Forwarded-User")
		}
		if len(proxy.From) == 0 {
			wrong("proxy.from", "required: the proxy's addresses, as in [10.0.0.7, 10.0.1.0/24]")
		}
		for i, from := range proxy.From {
			p, err := netip.ParsePrefix(from)
			if addr, addrErr := netip.ParseAddr(from); addrErr == nil {
				p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
			}
			if err != nil {
				wrong(fmt.Sprintf("proxy.from[%d]", i), "%q is not an address: as in 10.0.0.7 or 10.0.0.0/8", from)
			}
			a.from = append(a.from, p)
		}
		all = append(all, checkGroups("access.proxy.groups", proxy.Groups))
	}
	if provider != nil {
		if u, err := url.Parse(provider.Issuer); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			wrong("oidc.issuer", "%q is not an address, as in https://login.example.com", provider.Issuer)
		}
		if provider.ClientID == "" {
			wrong("oidc.client-id", "required: the server's id at the provider")
		}
		if provider.ClientSecretEnv != "" && provider.ClientSecretFile != "" {
			wrong("oidc.client-secret-env", "either this or client-secret-file is set")
		}
		all = append(all, checkGroups("access.oidc.groups", provider.Groups))
	}
	return a, errors.Join(all...)
}

// checkGroups returns what is wrong with the grants of groups, group by group.
func checkGroups(key string, groups map[string][]Grant) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[name]) == 0 {
			all = append(all, &yamlfile.KeyError{Key: key + "." + name, Problem: "required: as in [{role: viewer}]"})
		}
		for i := range groups[name] {
			all = append(all, groups[name][i].check(fmt.Sprintf("%s.%s[%d]", key, name, i)))
		}
	}
	return errors.Join(all...)
}

// Open reports whether nothing is configured.
func (a *Authenticator) Open() bool { return a.tokens == nil && a.proxy == nil && a.oidc == nil }

var local = &Identity{Name: "local", Grants: []Grant{{Role: Admin}}}

// Who returns who sends a request. The error wraps ErrNobody if the credentials are missing or
// wrong.
func (a *Authenticator) Who(r *http.Request) (*Identity, error) {
	if a.Open() {
		return local, fromHere(r)
	}
	if a.proxy != nil {
		if id := a.proxied(r); id != nil {
			return id, nil
		}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, fmt.Errorf("%w: the request has no credentials", ErrNobody)
	}
	if a.tokens != nil {
		if id := a.tokens.Find(token); id != nil {
			return id, nil
		}
	}
	if a.oidc != nil {
		return a.verified(r.Context(), token)
	}
	return nil, fmt.Errorf("%w: nobody has this token", ErrNobody)
}

// ofProxies are headers that proxies add, besides those that begin with X-Forwarded-. A request
// with one of them comes from somewhere else, though the proxy itself runs on this machine.
var ofProxies = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "Cf-Connecting-Ip"}

// fromHere refuses requests that this machine did not send. Whoever is far away can send any Host
// header, so the peer's address counts. A page of another site can make a browser on this machine
// send requests by a name of its own, so the name counts, too.
func fromHere(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: without access control the server answers this machine only, not %q", ErrNobody, r.RemoteAddr)
	}
	for key := range r.Header {
		if slices.Contains(ofProxies, key) || strings.HasPrefix(key, "X-Forwarded-") {
			return fmt.Errorf("%w: without access control the server answers this machine only, not a proxy: the request has the header %s", ErrNobody, key)
		}
	}
	// A link on a page of another site opens a page here. Nothing else of such a page reaches this.
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Dest") != "document" {
		return fmt.Errorf("%w: without access control the server answers no page of another site", ErrNobody)
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: without access control the server answers to localhost only, not to %q", ErrNobody, r.Host)
}

// Address returns the address from which a request comes: its peer's, and behind the configured
// proxy the one for which that says it has passed the request on.
func (a *Authenticator) Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !a.isProxy(r) {
		return host
	}
	all := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if last, err := netip.ParseAddr(strings.TrimSpace(all[len(all)-1])); err == nil {
		return last.Unmap().WithZone("").String()
	}
	return host
}

// isProxy reports whether the configured proxy sent a request.
func (a *Authenticator) isProxy(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(a.from, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) })
}

// proxied returns whom the proxy names; nil if the request is not of the proxy, or names nobody.
func (a *Authenticator) proxied(r *http.Request) *Identity {
	if !a.isProxy(r) {
		return nil
	}
	if len(r.Header.Values(a.proxy.Header)) != 1 || len(r.Header.Values(a.proxy.GroupsHeader)) > 1 {
		return nil // of two values, one is perhaps the client's
	}
	name := r.Header.Get(a.proxy.Header)
	if name == "" || len(name) > mostName || !utf8.ValidString(name) { // invalid ones look alike
		return nil
	}
	var groups []string
	for g := range strings.SplitSeq(r.Header.Get(a.proxy.GroupsHeader), ",") {
		groups = append(groups, strings.TrimSpace(g))
	}
	return identityOf(byProxy, name, granted(a.proxy.Groups, groups))
}

func granted(of map[string][]Grant, groups []string) (all []Grant) {
	for _, g := range append(groups, "*") {
		all = append(all, of[g]...)
	}
	return all
}

// askEvery is how often a provider is asked for its keys: one that did not answer, and one that has
// answered while tokens name keys that it did not have then. askAtOnce is what it is asked at once:
// where its keys are, for them, and for those that it has changed since.
const (
	askEvery  = 5 * time.Second
	askAtOnce = 3
)

// sparing sends requests to a provider as often as its limit allows, and fails others: anybody can
// send tokens that name keys which the provider does not have.
type sparing struct{ limit *rate.Limiter }

// RoundTrip implements [http.RoundTripper].
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, fmt.Errorf("the OpenID provider was asked for its keys within %v", askEvery)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// verified returns whom a token of the provider names.
func (a *Authenticator) verified(ctx context.Context, token string) (*Identity, error) {
	name, groups, _, err := a.claims(ctx, token)
	if err != nil {
		return nil, err
	}
	return identityOf(byOpenID, name, granted(a.oidc.Groups, groups)), nil
}

// claims returns what a valid token of the provider says.
func (a *Authenticator) claims(ctx context.Context, token string) (name string, groups []string, nonce string, err error) {
	v, err := a.provider(ctx)
	if err != nil {
		return "", nil, "", err
	}
	t, err := v.Verify(ctx, token)
	if err != nil {
		return "", nil, "", fmt.Errorf("%w: the token is not valid: %w", ErrNobody, err)
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return "", nil, "", fmt.Errorf("%w: the token's claims cannot be read: %w", ErrNobody, err)
	}
	name, _ = claims[orDefault(a.oidc.NameClaim, "email")].(string)
	if verified, said := claims["email_verified"].(bool); said && !verified && orDefault(a.oidc.NameClaim, "email") == "email" {
		name = "" // it may be somebody else's
	}
	if name == "" {
		name = t.Subject
	}
	if len(name) > mostName {
		return "", nil, "", fmt.Errorf("%w: the token's name has %d bytes, and %d are the most", ErrNobody, len(name), mostName)
	}
	if list, ok := claims[orDefault(a.oidc.GroupsClaim, "groups")].([]any); ok {
		for _, g := range list {
			if text, ok := g.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	return name, groups, t.Nonce, nil
}

func orDefault(s, by string) string {
	if s == "" {
		return by
	}
	return s
}

// provider returns the verifier, and asks the provider for its keys first. Others wait for the
// answer as long as they like.
func (a *Authenticator) provider(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	for {
		a.mu.Lock()
		verifier, asking := a.verifier, a.asking
		if verifier == nil && asking == nil {
			if time.Since(a.asked) < askEvery {
				a.mu.Unlock()
				return nil, fmt.Errorf("the OpenID provider %s did not answer; it is asked again within %v", a.oidc.Issuer, askEvery)
			}
			asking = make(chan struct{})
			a.asking = asking
			a.mu.Unlock()
			return a.askProvider(ctx, asking)
		}
		a.mu.Unlock()
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

// askProvider asks the provider for its keys, and closes a channel when it has answered.
func (a *Authenticator) askProvider(ctx context.Context, asking chan struct{}) (*oidc.IDTokenVerifier, error) {
	// keys are fetched later, too, with this context
	client := &http.Client{Timeout: askEvery, Transport: &sparing{rate.NewLimiter(rate.Every(askEvery), askAtOnce)}}
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), a.oidc.Issuer)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(asking)
	a.asking, a.asked = nil, time.Now()
	if err != nil {
		return nil, fmt.Errorf("asking the OpenID provider: %w", err)
	}
	a.endpoint = p.Endpoint()
	a.verifier = p.Verifier(&oidc.Config{ClientID: a.oidc.ClientID})
	return a.verifier, nil
}

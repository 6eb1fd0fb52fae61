package access

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

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

// Authenticator finds out who sends requests. It is safe for concurrent use.
type Authenticator struct {
	tokens *Tokens
	proxy  *Proxy
	from   []netip.Prefix
	openID *openID
}

// New returns an authenticator for the ways that are not nil; open opens the OpenID provider, and
// is nil to check the configuration only. Without any, each request from this machine is one of an
// admin named local. log gets a line each time that the provider's word lets no user in.
func New(tokens *Tokens, proxy *Proxy, oidc *OIDC, open func(*OIDC) Provider, log *slog.Logger) (*Authenticator, error) {
	a := &Authenticator{tokens: tokens, proxy: proxy}
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
	if oidc != nil {
		a.openID = &openID{OIDC: oidc, log: log, address: a.Address}
		if open != nil {
			a.openID.provider = open(oidc)
		}
		if u, err := url.Parse(oidc.Issuer); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			wrong("oidc.issuer", "%q is not an address, as in https://login.example.com", oidc.Issuer)
		}
		if oidc.ClientID == "" {
			wrong("oidc.client-id", "required: the server's id at the provider")
		}
		if oidc.ClientSecretEnv != "" && oidc.ClientSecretFile != "" {
			wrong("oidc.client-secret-env", "either this or client-secret-file is set")
		}
		all = append(all, checkGroups("access.oidc.groups", oidc.Groups))
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
func (a *Authenticator) Open() bool { return a.tokens == nil && a.proxy == nil && a.openID == nil }

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
	if a.openID != nil {
		return a.openID.who(r, token)
	}
	return nil, fmt.Errorf("%w: nobody has this token", ErrNobody)
}

// ofProxies are headers that proxies add, besides those that begin with X-Forwarded-. A request
// with one of them comes from somewhere else, though the proxy itself runs on this machine.
var ofProxies = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "Cf-Connecting-Ip"}

// fromHere refuses requests that this machine did not send. A remote sender can send any Host
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

// proxied returns whom the proxy names; nil if the request is not of the proxy, or has no name.
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

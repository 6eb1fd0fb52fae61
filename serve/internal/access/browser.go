package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Browser signs people in who use a browser, by a token or by the OpenID provider, and recognizes
// them by a cookie. It is safe for concurrent use. See DESIGN.md, "The console".
type Browser struct {
	who    *Authenticator
	sealer sealer
	url    *url.URL // under which people reach the server
	secret string   // of the server, for the provider
}

// CallbackPath is the path, under the server's URL, to which the OpenID provider sends people back.
const CallbackPath = "/sign-in/callback"

const (
	sessionCookie = "siding-session"
	loginCookie   = "siding-sign-in"
)

// NewBrowser returns what signs people in. key encrypts their cookies: servers with one key share
// their sessions, and without a key a restart signs everybody out. address is the URL under which
// people reach the server. secret is the server's for the OpenID provider; it may be empty.
func NewBrowser(who *Authenticator, key []byte, address, secret string) (*Browser, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL, as in https://siding.example.com", address)
	}
	s, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	return &Browser{who: who, sealer: s, url: u, secret: secret}, nil
}

// ByToken reports whether people can sign in by a token.
func (b *Browser) ByToken() bool { return b.who.tokens != nil }

// ByProvider reports whether people can sign in at an OpenID provider.
func (b *Browser) ByProvider() bool { return b.who.oidc != nil }

// secure reports whether cookies are for HTTPS only.
func (b *Browser) secure(r *http.Request) bool { return r.TLS != nil || b.url.Scheme == "https" }

// Who returns who sends a request: by its credentials as for the API, or else by its session. The
// error wraps ErrNobody if both are missing or wrong.
func (b *Browser) Who(r *http.Request) (*Identity, error) {
	id, err := b.who.Who(r)
	if !errors.Is(err, ErrNobody) || b.who.Open() {
		return id, err
	}
	text := cookieOf(r, sessionCookie, b.secure(r))
	if text == "" {
		return nil, err
	}
	var s session
	switch failed := b.sealer.open(sessionCookie, text, &s); {
	case failed != nil:
		return nil, fmt.Errorf("%w: %w; sign in again", ErrNobody, failed)
	case time.Now().After(s.Expires):
		return nil, fmt.Errorf("%w: the session is over; sign in again", ErrNobody)
	case s.Token != "" && b.who.tokens != nil:
		if id := b.who.tokens.Find(s.Token); id != nil {
			return id, nil
		}
	case s.Name != "" && b.who.oidc != nil:
		return identityOf(byOpenID, s.Name, granted(b.who.oidc.Groups, s.Groups)), nil
	}
	return nil, fmt.Errorf("%w: the session's credentials were withdrawn; sign in again", ErrNobody)
}

// SignedIn reports whether a request has the cookie of a session, so that its sender can sign out.
func (b *Browser) SignedIn(r *http.Request) bool {
	return cookieOf(r, sessionCookie, b.secure(r)) != ""
}

func (b *Browser) begin(w http.ResponseWriter, r *http.Request, s session) error {
	s.Expires = time.Now().Add(sessionTime)
	text, err := b.sealer.seal(sessionCookie, s)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie(sessionCookie, text, b.secure(r), sessionTime))
	return nil
}

// WithToken begins a session with a bearer token. The error wraps ErrNobody if nobody has it.
func (b *Browser) WithToken(w http.ResponseWriter, r *http.Request, token string) error {
	token = strings.TrimSpace(token)
	if b.who.tokens == nil || token == "" || b.who.tokens.Find(token) == nil {
		return fmt.Errorf("%w: nobody has this token", ErrNobody)
	}
	return b.begin(w, r, session{Token: token})
}

// SignOut ends the session of a request.
func (b *Browser) SignOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(sessionCookie, "", b.secure(r), -1))
}

// login is a sign-in that is under way at the provider.
type login struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Back     string    `json:"b"`
	Expires  time.Time `json:"e"`
}

// config returns what the provider is asked with, after asking it for its addresses.
func (b *Browser) config(ctx context.Context) (*oauth2.Config, error) {
	if b.who.oidc == nil {
		return nil, errors.New("no OpenID provider is configured")
	}
	if _, err := b.who.provider(ctx); err != nil {
		return nil, err
	}
	b.who.mu.Lock()
	defer b.who.mu.Unlock()
	scopes := b.who.oidc.Scopes
	if len(scopes) == 0 {
		scopes = []string{"openid", "email", "profile"}
	}
	return &oauth2.Config{
		ClientID: b.who.oidc.ClientID, ClientSecret: b.secret, Endpoint: b.who.endpoint,
		RedirectURL: strings.TrimSuffix(b.url.String(), "/") + CallbackPath, Scopes: scopes,
	}, nil
}

// Begin begins a sign-in at the provider, and returns the address to send the browser to. back is
// the path to which the sender wants to go afterwards; see [Back].
func (b *Browser) Begin(w http.ResponseWriter, r *http.Request, back string) (address string, err error) {
	config, err := b.config(r.Context())
	if err != nil {
		return "", err
	}
	l := login{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), Back: Back(back), Expires: time.Now().Add(loginTime)}
	text, err := b.sealer.seal(loginCookie, l)
	if err != nil {
		l.Back = "" // the address is too long to come back to
		if text, err = b.sealer.seal(loginCookie, l); err != nil {
			return "", err
		}
	}
	http.SetCookie(w, cookie(loginCookie, text, b.secure(r), loginTime))
	return config.AuthCodeURL(l.State, oauth2.S256ChallengeOption(l.Verifier), oauth2.SetAuthURLParam("nonce", l.Nonce)), nil
}

// Finish ends a sign-in with what the provider sent the browser back with, and returns the path to
// go on to; empty for the first page. The error wraps ErrNobody if the provider did not vouch for
// the sender.
func (b *Browser) Finish(w http.ResponseWriter, r *http.Request) (back string, err error) {
	var l login
	if err := b.sealer.open(loginCookie, cookieOf(r, loginCookie, b.secure(r)), &l); err != nil || time.Now().After(l.Expires) {
		return "", fmt.Errorf("%w: the sign-in took more than %v, or began in another browser; sign in again", ErrNobody, loginTime)
	}
	http.SetCookie(w, cookie(loginCookie, "", b.secure(r), -1))
	q := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.State)) != 1 {
		return "", fmt.Errorf("%w: the answer belongs to another sign-in; sign in again", ErrNobody)
	}
	if code := q.Get("error"); code != "" {
		return "", fmt.Errorf("%w: the OpenID provider refused: %s: %s", ErrNobody, code, q.Get("error_description"))
	}
	config, err := b.config(r.Context())
	if err != nil {
		return "", err
	}
	ctx := context.WithValue(r.Context(), oauth2.HTTPClient, &http.Client{Timeout: askEvery})
	answer, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(l.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
			return "", fmt.Errorf("%w: the OpenID provider refused the code: %w", ErrNobody, err)
		}
		return "", fmt.Errorf("asking the OpenID provider for a token: %w", err)
	}
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return "", fmt.Errorf("%w: the OpenID provider sent no id_token: the scope openid is required", ErrNobody)
	}
	name, groups, nonce, err := b.who.claims(ctx, raw)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(l.Nonce)) != 1 {
		return "", fmt.Errorf("%w: the token belongs to another sign-in; sign in again", ErrNobody)
	}
	s := session{Name: name}
	for _, g := range groups {
		if _, named := b.who.oidc.Groups[g]; named {
			s.Groups = append(s.Groups, g)
		}
	}
	return Back(l.Back), b.begin(w, r, s)
}

// Back returns a path of this server to go back to; empty if a text is none. So no link can send
// people who sign in to another site.
func Back(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return ""
	}
	return path
}

package access

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
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
// their sessions, and without a key a restart signs all users out. address is the URL under which
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
func (b *Browser) ByProvider() bool { return b.who.openID != nil }

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
	case s.Name != "" && b.who.openID != nil:
		return identityOf(byOpenID, s.Name, granted(b.who.openID.Groups, s.Groups)), nil
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

// WithToken begins a session with a bearer token. The error wraps ErrNobody if no user has it.
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

// loginName returns the name of a sign-in's cookie: each has its own, so that two tabs can sign in
// at once.
func loginName(state string) string { return loginCookie + "-" + state[:min(len(state), 16)] }

// makeRoom deletes the oldest sign-ins that a browser has under way. With one of a size more, all
// have no more bytes than one cookie may have: else a server refuses the browser's headers.
func (b *Browser) makeRoom(w http.ResponseWriter, r *http.Request, size int) {
	type underWay struct {
		cookie  *http.Cookie
		expires time.Time
	}
	var all []underWay
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, cookie(loginName(""), "", b.secure(r), 0).Name) {
			var l login // of what cannot be opened, the expiry is zero
			_ = b.sealer.open(loginCookie, c.Value, &l)
			all = append(all, underWay{c, l.Expires})
			size += len(c.Value)
		}
	}
	slices.SortStableFunc(all, func(x, y underWay) int { return x.expires.Compare(y.expires) })
	for _, l := range all {
		if size <= mostCookie && time.Now().Before(l.expires) {
			return
		}
		size -= len(l.cookie.Value)
		http.SetCookie(w, cookie(strings.TrimPrefix(l.cookie.Name, securePrefix), "", b.secure(r), -1))
	}
}

// at returns a sign-in as the provider is asked about it.
func (b *Browser) at(l *login) *SignIn {
	return &SignIn{State: l.State, Nonce: l.Nonce, Verifier: l.Verifier, Secret: b.secret, Redirect: strings.TrimSuffix(b.url.String(), "/") + CallbackPath}
}

// Begin begins a sign-in at the provider, and returns the address to send the browser to. back is
// the path to which the sender wants to go afterwards; see [Back].
func (b *Browser) Begin(w http.ResponseWriter, r *http.Request, back string) (address string, err error) {
	l := login{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Back: Back(back), Expires: time.Now().Add(loginTime)}
	if address, err = b.who.openID.provider.Address(r.Context(), b.at(&l)); err != nil {
		return "", b.who.openID.failed(r, err)
	}
	text, err := b.sealer.seal(loginCookie, l)
	if err != nil {
		l.Back = "" // the address is too long to come back to
		if text, err = b.sealer.seal(loginCookie, l); err != nil {
			return "", err
		}
	}
	b.makeRoom(w, r, len(text))
	http.SetCookie(w, cookie(loginName(l.State), text, b.secure(r), loginTime))
	return address, nil
}

// Finish ends a sign-in with what the provider sent the browser back with, and returns the path to
// go on to; empty for the first page. The error wraps ErrNobody if the provider did not vouch for
// the sender.
func (b *Browser) Finish(w http.ResponseWriter, r *http.Request) (back string, err error) {
	var l login
	q := r.URL.Query()
	own := loginName(q.Get("state"))
	err = b.sealer.open(loginCookie, cookieOf(r, own, b.secure(r)), &l)
	if err != nil || time.Now().After(l.Expires) || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.State)) != 1 {
		return "", b.who.openID.refuse(r, "state", nil, "the sign-in took more than %v, or began in another browser; sign in again", loginTime)
	}
	http.SetCookie(w, cookie(own, "", b.secure(r), -1))
	if code := q.Get("error"); code != "" {
		why := errors.New(code + ": " + q.Get("error_description"))
		return "", b.who.openID.refuse(r, "provider", why, "the OpenID provider refused: %s", short(why))
	}
	raw, err := b.who.openID.provider.Token(r.Context(), b.at(&l), q.Get("code"))
	if err != nil {
		return "", b.who.openID.failed(r, err)
	}
	name, groups, nonce, err := b.who.openID.claims(r, raw)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(l.Nonce)) != 1 {
		return "", b.who.openID.refuse(r, "nonce", nil, "the token belongs to another sign-in; sign in again")
	}
	s := session{Name: name}
	for _, g := range groups {
		if _, named := b.who.openID.Groups[g]; named {
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

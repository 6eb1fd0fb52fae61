package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// sessionTime is how long a user stays signed in, and loginTime how long a sign-in may take.
const (
	sessionTime = 8 * time.Hour
	loginTime   = 10 * time.Minute
)

// mostCookie bounds the content of a cookie: browsers refuse those of more than 4 KiB.
const mostCookie = 3800

// session is who signed in. It travels in a cookie that only the server can read.
type session struct {
	// Token is a bearer token; it is looked up for each request, so that one which was withdrawn
	// ends the session.
	Token string `json:"t,omitempty"`
	// Name and Groups are what an OpenID provider said. The groups are those that the configuration
	// names.
	Name    string    `json:"n,omitempty"`
	Groups  []string  `json:"g,omitempty"`
	Expires time.Time `json:"e"`
}

// sealer encrypts and signs what a browser keeps for the server.
type sealer struct{ aead cipher.AEAD }

// newSealer returns a sealer with a key; with a random one if it is empty.
func newSealer(key []byte) (sealer, error) {
	if len(key) == 0 {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
	}
	sum := sha256.Sum256(append([]byte("siding console session\n"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// errSeal reports a cookie that the server did not make, or not with its key.
var errSeal = errors.New("the cookie is not of this server")

// seal returns a value as the content of a cookie. What is sealed under one name cannot be opened
// under another.
func (s sealer) seal(name string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sealed := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(name)))
	if len(sealed) > mostCookie {
		return "", errors.New("what identifies you is too large for a cookie: the configuration should name fewer groups")
	}
	return sealed, nil
}

// open reads what seal returned.
func (s sealer) open(name, text string, v any) error {
	if len(text) > mostCookie {
		return errSeal
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return errSeal
	}
	return json.Unmarshal(plain, v)
}

// securePrefix begins the names of cookies that no page of a sibling domain can set.
const securePrefix = "__Host-"

// cookie returns a cookie that scripts cannot read, and that other sites' forms do not send. A
// negative time deletes it.
func cookie(name, value string, secure bool, lasts time.Duration) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second), HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
	if secure {
		c.Name = securePrefix + name
	}
	if lasts < 0 {
		c.MaxAge = -1
	}
	return c
}

// cookieOf returns the content of a request's cookie; empty if there is none.
func cookieOf(r *http.Request, name string, secure bool) string {
	c, err := r.Cookie(cookie(name, "", secure, 0).Name)
	if err != nil {
		return ""
	}
	return c.Value
}

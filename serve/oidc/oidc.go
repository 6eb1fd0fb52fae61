// Package oidc asks an OpenID provider for the server: about tokens, and when people sign in to the
// console. Its [Open] is a value of serve.Config.OpenID, so that only those who use it link it.
package oidc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// Open returns the provider of a configuration. It is asked when it is needed first.
func Open(is *access.OIDC) access.Provider { return &provider{OIDC: is} }

// provider is an OpenID provider. It is safe for concurrent use.
type provider struct {
	*access.OIDC

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

// sparing sends requests to a provider as often as its limit allows, since any sender can send
// tokens that name keys which the provider does not have. Between, its last answer stands, if it
// was good.
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

// unfetched begins the errors of go-oidc about keys that it could not fetch. They have no type.
const unfetched = "failed to verify signature: fetching keys "

func refused(rule string, cause error, format string, args ...any) error {
	return &access.RefusedError{Rule: rule, Cause: cause, Text: fmt.Sprintf(format, args...)}
}

// Claims implements access.Provider.
func (p *provider) Claims(ctx context.Context, token string) (*access.Claims, error) {
	v, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	t, err := v.Verify(ctx, token)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), unfetched):
		return nil, &access.DownError{Asked: "its keys", Cause: err}
	case err != nil:
		return nil, refused("token", nil, "the token is not valid: %v", err)
	}
	all := map[string]any{}
	if err := t.Claims(&all); err != nil {
		return nil, refused("claims", nil, "the token's claims cannot be read: %v", err)
	}
	return &access.Claims{Subject: t.Subject, Nonce: t.Nonce, All: all}, nil
}

// config returns what the provider is asked with, after asking it for its addresses.
func (p *provider) config(ctx context.Context, s *access.SignIn) (*oauth2.Config, error) {
	if _, err := p.ask(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Without a style, the library tries both, and sends the code twice.
	style, err := authStyle(p.methods, s.Secret)
	if err != nil {
		return nil, &access.DownError{Asked: "its authentication methods", Cause: err}
	}
	endpoint := p.endpoint
	endpoint.AuthStyle = style
	scopes := p.Scopes
	if len(scopes) == 0 {
		scopes = []string{"openid", "email", "profile"}
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: s.Secret, Endpoint: endpoint, RedirectURL: s.Redirect, Scopes: scopes}, nil
}

// Address implements access.Provider.
func (p *provider) Address(ctx context.Context, s *access.SignIn) (string, error) {
	config, err := p.config(ctx, s)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(s.State, oauth2.S256ChallengeOption(s.Verifier), oauth2.SetAuthURLParam("nonce", s.Nonce)), nil
}

// Token implements access.Provider.
func (p *provider) Token(ctx context.Context, s *access.SignIn, code string) (string, error) {
	config, err := p.config(ctx, s)
	if err != nil {
		return "", err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: askEvery})
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response.StatusCode < http.StatusInternalServerError {
			return "", refused("code", err, "the OpenID provider refused the code; sign in again")
		}
		return "", &access.DownError{Asked: "a token", Cause: err}
	}
	token, _ := answer.Extra("id_token").(string)
	if token == "" {
		return "", refused("id_token", nil, "the OpenID provider sent no id_token: the scope openid is required")
	}
	return token, nil
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
		return nil, &access.DownError{Asked: "its addresses", Cause: err}
	}
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := is.Claims(&says); err != nil {
		return nil, &access.DownError{Asked: "its addresses", Cause: err}
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

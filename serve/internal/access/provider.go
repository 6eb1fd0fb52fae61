package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

// Provider asks an OpenID provider. Its errors are a [*RefusedError], a [*DownError] or one that
// neither is logged nor means that a user is refused. It is safe for concurrent use.
type Provider interface {
	// Claims returns what a valid token says.
	Claims(ctx context.Context, token string) (*Claims, error)
	// Address returns where a browser signs in.
	Address(ctx context.Context, s *SignIn) (string, error)
	// Token returns the token for the code with which the browser came back.
	Token(ctx context.Context, s *SignIn, code string) (string, error)
}

// Claims are what a token says.
type Claims struct {
	Subject, Nonce string
	All            map[string]any
}

// SignIn is a sign-in at the provider.
type SignIn struct {
	State, Nonce, Verifier string
	Redirect               string // where the provider sends the browser back to
	Secret                 string // of the server; it may be empty
}

// RefusedError is why a provider's token, or a sign-in, is refused. Cause is for the log only, and
// may be nil: it may quote the provider.
type RefusedError struct {
	Rule, Text string
	Cause      error
}

func (e *RefusedError) Error() string { return e.Text }

// DownError is that the provider gave no answer of use when it was asked for something.
type DownError struct {
	Asked string
	Cause error
}

func (e *DownError) Error() string {
	return fmt.Sprintf("the OpenID provider gave no answer of use when it was asked for %s: try again; the server's log has its answer", e.Asked)
}

// openID takes the word of an OpenID provider, and logs when that lets no user in.
type openID struct {
	*OIDC
	provider Provider
	log      *slog.Logger
	address  func(*http.Request) string // from which a request comes
}

// refuse returns an error that wraps [ErrNobody], and logs it with the rule that refuses. cause is
// for the log only, and may be nil: it may quote the provider.
func (p *openID) refuse(r *http.Request, rule string, cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	attrs := []any{"rule", rule, "why", text, "from", p.address(r)}
	if cause != nil {
		attrs = append(attrs, "error", short(cause))
	}
	p.log.Info("siding: a sign-in or a token of the OpenID provider was refused", attrs...)
	return fmt.Errorf("%w: %s", ErrNobody, text)
}

// failed logs what a provider returned, and returns an error that quotes none of its answers. One
// of a refusal wraps [ErrNobody].
func (p *openID) failed(r *http.Request, err error) error {
	if e, ok := errors.AsType[*RefusedError](err); ok {
		return p.refuse(r, e.Rule, e.Cause, "%s", e.Text)
	}
	if e, ok := errors.AsType[*DownError](err); ok {
		p.log.Error("siding: the OpenID provider gave no answer of use", "asked", e.Asked, "provider", p.Issuer, "error", short(e.Cause))
	}
	return err
}

// mostCause bounds what the log has of an answer of the provider, which may be a page.
const mostCause = 500

func short(err error) string {
	text := err.Error()
	return text[:min(len(text), mostCause)]
}

// who returns whom a token of the provider names.
func (p *openID) who(r *http.Request, token string) (*Identity, error) {
	name, groups, _, err := p.claims(r, token)
	if err != nil {
		return nil, err
	}
	return identityOf(byOpenID, name, granted(p.Groups, groups)), nil
}

// claims returns what a valid token of the provider says.
func (p *openID) claims(r *http.Request, token string) (name string, groups []string, nonce string, err error) {
	is, err := p.provider.Claims(r.Context(), token)
	if err != nil {
		return "", nil, "", p.failed(r, err)
	}
	claim := orDefault(p.NameClaim, "email")
	name, _ = claimOf(is.All, claim).(string)
	if claim == "email" && is.All["email_verified"] != true {
		name = "" // it may be another user's
	}
	switch name = orDefault(name, is.Subject); {
	case name == "":
		return "", nil, "", p.refuse(r, "name", nil, "the token has neither the claim %s nor sub, so it names nobody", claim)
	case len(name) > mostName:
		return "", nil, "", p.refuse(r, "name", nil, "the token's name has %d bytes, and %d are the most", len(name), mostName)
	}
	switch is := claimOf(is.All, orDefault(p.GroupsClaim, "groups")).(type) {
	case string: // some providers send one group so
		groups = append(groups, is)
	case []any:
		for _, g := range is {
			if text, ok := g.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	return name, groups, is.Nonce, nil
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

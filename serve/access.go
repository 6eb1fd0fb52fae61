package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// What [Access] is made of.
type (
	// Proxy takes the word of a proxy that has authenticated people.
	Proxy = access.Proxy
	// OIDC accepts tokens of an OpenID provider.
	OIDC = access.OIDC
	// Provider asks an OpenID provider; oidc.Open of package serve/oidc returns one.
	Provider = access.Provider
	// Grant gives a role on topics.
	Grant = access.Grant
	// Role is what people may do. Each includes those before it.
	Role = access.Role
)

// The roles. A Viewer sees all but values, keys and headers of letters, a Reader these, too. An
// Operator redrives, discards and reopens; an Admin changes rules and prunes.
const (
	Viewer   = access.Viewer
	Reader   = access.Reader
	Operator = access.Operator
	Admin    = access.Admin
)

// authenticator returns what finds out who sends a request.
func (c *Config) authenticator(log *slog.Logger) (*access.Authenticator, error) {
	var tokens *access.Tokens
	a := &c.Access
	if a.TokensFile != "" {
		var err error
		if tokens, err = access.ReadTokens(a.TokensFile, log); err != nil {
			return nil, yamlfile.NamedBy("access.tokens-file", err)
		}
	}
	return access.New(tokens, a.Proxy, a.OIDC, c.OpenID, log)
}

// browser returns what signs people in to the console.
func (c *Config) browser(who *access.Authenticator) (*access.Browser, error) {
	key, err := c.Access.sessionKey()
	secret, secretErr := c.Access.clientSecret()
	if err = errors.Join(err, secretErr); err != nil || !isAddress(c.URL) {
		return nil, err // the check of the configuration reports a wrong URL
	}
	return access.NewBrowser(who, key, c.URL, secret)
}

// leastKey is how long the key of sessions has to be, in bytes.
const leastKey = 32

// sessionKey reads the key of sessions; it is empty if none is configured.
func (a *Access) sessionKey() ([]byte, error) {
	if a.SessionKeyFile == "" {
		return nil, nil
	}
	key, err := os.ReadFile(a.SessionKeyFile)
	if err == nil && len(key) < leastKey {
		err = fmt.Errorf("%s has %d bytes: at least %d, random ones", a.SessionKeyFile, len(key), leastKey)
	}
	if err != nil {
		return nil, &KeyError{Key: "access.session-key-file", Problem: err.Error()}
	}
	return key, nil
}

// clientSecret reads the server's secret for the OpenID provider; it is empty if none is
// configured.
func (a *Access) clientSecret() (string, error) {
	switch {
	case a.OIDC == nil:
		return "", nil
	case a.OIDC.ClientSecretEnv != "":
		secret := os.Getenv(a.OIDC.ClientSecretEnv)
		if secret == "" {
			return "", &KeyError{Key: "access.oidc.client-secret-env", Problem: fmt.Sprintf("the variable %s is not set", a.OIDC.ClientSecretEnv)}
		}
		return secret, nil
	case a.OIDC.ClientSecretFile != "":
		text, err := os.ReadFile(a.OIDC.ClientSecretFile)
		secret := strings.TrimSpace(string(text))
		if err == nil && secret == "" {
			err = fmt.Errorf("%s is empty", a.OIDC.ClientSecretFile)
		}
		if err != nil {
			return "", &KeyError{Key: "access.oidc.client-secret-file", Problem: err.Error()}
		}
		return secret, nil
	}
	return "", nil
}

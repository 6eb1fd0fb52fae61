package serve

import (
	"log/slog"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// authenticator returns what finds out who sends a request.
func (a *Access) authenticator(log *slog.Logger) (*access.Authenticator, error) {
	var tokens *access.Tokens
	if a.TokensFile != "" {
		var err error
		if tokens, err = access.ReadTokens(a.TokensFile, log); err != nil {
			return nil, &KeyError{Key: "access.tokens-file", Problem: err.Error()}
		}
	}
	who, err := access.New(tokens, a.Proxy, a.OIDC)
	if err != nil {
		return nil, &KeyError{Key: "access", Problem: err.Error()}
	}
	return who, nil
}

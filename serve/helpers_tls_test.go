package serve

import (
	"crypto/tls"
	"log/slog"
	"testing"
)

// TLSOfServer is what a server speaks that has a certificate of its own.
func TLSOfServer(t *testing.T) *tls.Config {
	t.Helper()
	config, err := filesOf(t, issue(t, 1)).config(slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

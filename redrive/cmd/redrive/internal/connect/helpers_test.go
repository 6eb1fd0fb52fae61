package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

// world is what a command is started with: its arguments, variables, and the configuration file of
// its user.
type world struct {
	args   []string
	env    map[string]string
	config string
	dial   func(ctx context.Context, network, host string) (net.Conn, error)
}

func (w world) resolve(t *testing.T) (*Cluster, error) {
	t.Helper()
	set := pflag.NewFlagSet("redrive", pflag.ContinueOnError)
	f := AddFlags(set)
	if err := set.Parse(w.args); err != nil {
		t.Fatal(err)
	}
	env := Environment{Getenv: func(k string) string { return w.env[k] }, Folder: t.TempDir(), Dial: w.dial}
	if w.config != "" {
		write(t, filepath.Join(env.Folder, DefaultFile), w.config)
	}
	return f.Cluster(env)
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// identity is a certificate of 127.0.0.1 and example.com, its own authority, and its key.
type identity struct {
	pair      tls.Certificate
	cert, key string // in PEM form
}

// newIdentity returns the certificate of package httptest.
func newIdentity(t *testing.T) identity {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	return identity{pair, inPEM("CERTIFICATE", pair.Certificate[0]), keyInPEM(t, pair.PrivateKey)}
}

func keyInPEM(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM("PRIVATE KEY", der)
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

const hunter = "hunter2-hunter2"

//go:build unix

package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/access"
)

func warnings(c Config, dir string) string {
	var all []string
	for _, w := range c.Warnings() {
		all = append(all, strings.ReplaceAll(w.Error(), dir+string(filepath.Separator), ""))
	}
	return strings.Join(all, "\n")
}

// A user of the machine who can read a key, a token file or a receiver's URL has the secret, and
// one who can change a token file lets any sender in.
func TestConfig_WarnsOfSecretsThatOthersCanRead(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"tokens": "", "session": "", "key": "", "secret": "", "url": "", "cert": ""})
	in := func(name string) string { return filepath.Join(dir, name) }
	c := Config{
		Access: Access{TokensFile: in("tokens"), SessionKeyFile: in("session"), OIDC: &access.OIDC{ClientSecretFile: in("secret")}},
		TLS:    TLS{CertFile: in("cert"), KeyFile: in("key")}, Notify: []Receiver{{}, {URLFile: in("url")}, {URLFile: in("missing")}},
	}
	keys := map[string]string{
		"tokens": "access.tokens-file", "session": "access.session-key-file", "key": "tls.key-file", "secret": "access.oidc.client-secret-file", "url": "notify[1].url-file",
	}
	if got := warnings(c, dir); got != "" {
		t.Errorf("secrets of the owner alone: %s", got)
	}
	if err := os.Chmod(in("cert"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, key := range keys {
		for mode, text := range map[os.FileMode]string{0o400: "", 0o640: "0640", 0o604: "0604", 0o620: "0620"} {
			want := ""
			if text != "" {
				want = key + ": other users of this machine can read or change " + name + " (mode " + text + "): chmod 600 " + name
			}
			if err := os.Chmod(in(name), mode); err != nil {
				t.Fatal(err)
			}
			if got := warnings(c, dir); got != want {
				t.Errorf("%s of mode %v: %q, want %q", name, mode, got, want)
			}
		}
		if err := os.Chmod(in(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A Kubernetes secret belongs to root, and the process reads it by its group.
func TestConfig_DoesNotWarnOfSecretsThatTheProcessReadsByItsGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	dir := write(t, map[string]string{"tokens": ""})
	c := Config{Access: Access{TokensFile: filepath.Join(dir, "tokens")}}
	if err := os.Chown(c.Access.TokensFile, 65532, -1); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o440: false, 0o444: true, 0o460: true} {
		if err := os.Chmod(c.Access.TokensFile, mode); err != nil {
			t.Fatal(err)
		}
		if got := warnings(c, dir); (got != "") != want {
			t.Errorf("mode %v: %q", mode, got)
		}
	}
}

// Tokens without TLS can be read by any host on the way. A proxy, or an address with https, says
// that another process encrypts.
func TestConfig_WarnsOfTokensWithoutTLS(t *testing.T) {
	t.Parallel()
	tokens, signIn := Access{TokensFile: "tokens.yaml"}, Access{OIDC: &access.OIDC{}}
	for _, test := range []struct {
		about string
		c     Config
		warns bool
	}{
		{"tokens", Config{Listen: "0.0.0.0:8642", Access: tokens}, true},
		{"tokens, any address", Config{Listen: ":8642", Access: tokens}, true},
		{"sign-in", Config{Listen: "10.0.0.7:8642", URL: "http://siding.example.com", Access: signIn}, true},
		{"TLS", Config{Listen: "0.0.0.0:8642", Access: tokens, TLS: TLS{CertFile: "tls.crt"}}, false},
		{"an address with https", Config{Listen: "0.0.0.0:8642", URL: "https://siding.example.com", Access: signIn}, false},
		{"a proxy", Config{Listen: "0.0.0.0:8642", Access: Access{TokensFile: "tokens.yaml", Proxy: &access.Proxy{}}}, false},
		{"a loopback address", Config{Listen: "[::1]:8642", Access: tokens}, false},
		{"the default address", Config{Access: tokens}, false},
		{"localhost", Config{Listen: "localhost:8642", Access: tokens}, false},
	} {
		if got := warnings(test.c, "-"); strings.HasPrefix(got, "tls: not set, so tokens") != test.warns || !test.warns && got != "" {
			t.Errorf("%s: %q", test.about, got)
		}
	}
}

// An operator who starts the server reads the warnings in its log.
func TestNew_LogsTheWarnings(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"tokens.yaml": "tokens: []\n"})
	var log strings.Builder
	if _, err := New(Config{Listen: "0.0.0.0:8642", Access: Access{TokensFile: filepath.Join(dir, "tokens.yaml")}}, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), `warning="tls: not set, so tokens`) {
		t.Errorf("the log is %s", log.String())
	}
}

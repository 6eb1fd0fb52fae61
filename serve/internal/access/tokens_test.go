package access_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

func hash(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

func write(t *testing.T, file, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestTokens_GiveRolesByTopic(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Now()
	write(t, file, "tokens:\n  - name: ada\n    sha256: "+hash("secret")+"\n    grants:\n      - {role: viewer}\n      - {role: operator, topics: [orders*]}\n", now)
	tokens, err := access.ReadTokens(file, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ada := tokens.Find("secret")
	if ada == nil || ada.Name != "token ada" || ada.On("orders.dlq") != access.Operator || ada.On("bills.dlq") != access.Viewer {
		t.Errorf("found %+v", ada)
	}
	for _, wrong := range []string{"", "Secret", hash("secret")} {
		if id := tokens.Find(wrong); id != nil {
			t.Errorf("%q is %+v", wrong, id)
		}
	}
}

func TestReadTokens_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tokens: [{name: " + strings.Repeat("é", 501) + ", sha256: " + hash("a") + ", grants: [{role: viewer}]}]": "tokens[0].name: it has 1002 bytes, and 1000 are the most",
		"tokens: [{name: ada, sha256: " + hash("test") + ", grants: [{role: viewer}]}]":                           `tokens.yaml:1: tokens[0].sha256: the hash of "test", which everybody can guess: take a random token, as openssl rand -hex 32 prints one`,
		"tokens: [{name: ada, sha256: " + hash("") + ", grants: [{role: viewer}]}]":                               `the hash of "", which everybody can guess`,
		"tokens: [{name: ada, sha256: " + hash("changeme\n") + ", grants: [{role: viewer}]}]":                     `the hash of "changeme", which everybody can guess`,
	} {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		write(t, file, text, time.Now())
		if _, err := access.ReadTokens(file, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

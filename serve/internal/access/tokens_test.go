package access_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
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

// A file that changes is read again. One that became broken keeps the tokens before.
func TestTokens_AreReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Now()
	entry := func(name, token string) string {
		return "tokens: [{name: " + name + ", sha256: " + hash(token) + ", grants: [{role: viewer}]}]\n"
	}
	write(t, file, entry("ada", "a"), now)
	tokens, err := access.ReadTokens(file, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "tokens: [", now.Add(time.Second))
	if tokens.Find("a") == nil {
		t.Error("a broken file took the tokens away")
	}
	write(t, file, entry("bob", "b"), now.Add(2*time.Second))
	for end := time.Now().Add(10 * time.Second); tokens.Find("b") == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the file is not read again")
		}
	}
	if tokens.Find("a") != nil {
		t.Error("a token that was withdrawn still counts")
	}
}

// Another file in its place counts, although it has the same time and size.
func TestTokens_SeesAnotherContentOfTheSameTimeAndSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		now := time.Now()
		write(t, file, "tokens: [{name: ada, sha256: "+hash("a")+", grants: [{role: viewer}]}]", now)
		tokens, err := access.ReadTokens(file, slog.Default())
		if err != nil || tokens.Find("a") == nil {
			t.Fatal(err)
		}
		write(t, file, "tokens: [{name: bob, sha256: "+hash("b")+", grants: [{role: viewer}]}]", now)
		time.Sleep(time.Second)
		if tokens.Find("a") != nil || tokens.Find("b") == nil {
			t.Error("the tokens before count")
		}
	})
}

// A file that is broken is told once, with the line, not with each request.
func TestTokens_ABrokenFileIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		write(t, file, "tokens: []\n", time.Now())
		var words strings.Builder
		tokens, err := access.ReadTokens(file, slog.New(slog.NewTextHandler(&words, nil)))
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, "tokens:\n  - nam: ada\n", time.Now().Add(time.Second))
		for range 5 {
			time.Sleep(2 * time.Second)
			tokens.Find("a")
		}
		if n := strings.Count(words.String(), "tokens.yaml:2: tokens[0].nam: there is no such key; did you mean name?"); n != 1 {
			t.Errorf("told %d times: %s", n, words.String())
		}
	})
}

func TestReadTokens_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tokens: [{name: ada, sha256: 12, grants: [{role: viewer}]}]":                               "tokens.yaml:1: tokens[0].sha256: not 64 hexadecimal digits",
		"tokens: [{sha256: " + hash("a") + ", grants: [{role: viewer}]}]":                           "tokens[0].name: required",
		"tokens: [{name: ada, sha256: " + hash("a") + "}]":                                          "tokens[0].grants: required",
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{role: king}]}]":                  `"king" is not a role: viewer, reader, operator or admin`,
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{topics: [a]}]}]":                 "tokens[0].grants[0].role: required",
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{role: viewer, topics: ['[']}]}]": `"[" is not a pattern`,
		"tokens: [{name: ada, sha256: " + hash("test") + ", grants: [{role: viewer}]}]":             `tokens.yaml:1: tokens[0].sha256: the hash of "test", which everybody can guess: take a random token, as openssl rand -hex 32 prints one`,
		"tokens: [{name: ada, sha256: " + hash("") + ", grants: [{role: viewer}]}]":                 `the hash of "", which everybody can guess`,
		"tokens: [{name: ada, sha256: " + hash("changeme\n") + ", grants: [{role: viewer}]}]":       `the hash of "changeme", which everybody can guess`,
		"tokens: [{name: ada, secret: a}]":                                                          "tokens[0].secret: there is no such key; allowed are name, sha256, grants",
	} {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		write(t, file, text, time.Now())
		if _, err := access.ReadTokens(file, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

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

// The token file is gone, empty or half written, as an editor leaves it for a moment: no user is
// locked out, and the log says where it is wrong, once.
func TestTokens_KeepTheirOwnersWhileTheFileIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		entry := func(name string) string {
			return "  - {name: " + name + ", sha256: " + hash(name) + ", grants: [{role: viewer}]}\n"
		}
		one, both := "tokens:\n"+entry("ada"), "tokens:\n"+entry("ada")+entry("bob")
		write(t, file, both, time.Now())
		var words strings.Builder
		tokens, err := access.ReadTokens(file, slog.New(slog.NewTextHandler(&words, nil)))
		if err != nil {
			t.Fatal(err)
		}
		looks := func(what string, n int, ada, bob bool, says string) {
			t.Helper()
			words.Reset()
			for range n {
				time.Sleep(time.Second)
				if tokens.Find("ada") != nil != ada || tokens.Find("bob") != nil != bob {
					t.Errorf("%s: ada counts: %v, bob: %v", what, tokens.Find("ada") != nil, tokens.Find("bob") != nil)
				}
			}
			if logged := strings.Count(words.String(), "level=ERROR"); says != "" && (logged != 1 || !strings.Contains(words.String(), says)) || says == "" && logged > 0 {
				t.Errorf("%s: the log has %q", what, words.String())
			}
		}
		now := func() time.Time { return time.Now().Add(time.Second) } // as the next look finds it
		looks("right", 2, true, true, "")
		write(t, file, "", now())
		looks("empty", 5, true, true, "tokens.yaml: tokens: required: a list of tokens, or [] for none")
		write(t, file, "# nothing\n", now())
		looks("a comment", 2, true, true, "") // the same is wrong
		write(t, file, both, now())
		looks("there again", 2, true, true, "")
		write(t, file, "tokens:\n", now())
		looks("the first line", 5, true, true, "tokens: required")
		write(t, file, "tokens:\n  - nam: ada\n", now())
		looks("misspelled", 5, true, true, "tokens.yaml:2: tokens[0].nam: there is no such key; did you mean name?")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		looks("gone", 5, true, true, "no such file")
		write(t, file, one, now()) // right by itself
		looks("half written", 1, true, true, "")
		write(t, file, both, now())
		looks("written", 5, true, true, "")
		write(t, file, one, now())
		looks("bob just left", 1, true, true, "")
		looks("bob left", 2, true, false, "")
		write(t, file, "tokens: []\n", now())
		looks("all just left", 1, true, false, "")
		looks("all left", 2, false, false, "")
	})
}

func TestReadTokens_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":          "tokens.yaml: tokens: required: a list of tokens, or [] for none",
		"tokens:\n": "tokens.yaml:1: tokens: required: a list of tokens, or [] for none",
		"tokens: [{name: ada, sha256: 12, grants: [{role: viewer}]}]":                                             "tokens.yaml:1: tokens[0].sha256: not 64 hexadecimal digits",
		"tokens: [{sha256: " + hash("a") + ", grants: [{role: viewer}]}]":                                         "tokens[0].name: required",
		"tokens: [{name: " + strings.Repeat("é", 501) + ", sha256: " + hash("a") + ", grants: [{role: viewer}]}]": "tokens[0].name: it has 1002 bytes, and 1000 are the most",
		"tokens: [{name: ada, sha256: " + hash("a") + "}]":                                                        "tokens[0].grants: required",
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{role: king}]}]":                                `"king" is not a role: viewer, reader, operator or admin`,
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{topics: [a]}]}]":                               "tokens[0].grants[0].role: required",
		"tokens: [{name: ada, sha256: " + hash("a") + ", grants: [{role: viewer, topics: ['[']}]}]":               `"[" is not a pattern`,
		"tokens: [{name: ada, sha256: " + hash("test") + ", grants: [{role: viewer}]}]":                           `tokens.yaml:1: tokens[0].sha256: the hash of "test", which everybody can guess: take a random token, as openssl rand -hex 32 prints one`,
		"tokens: [{name: ada, sha256: " + hash("") + ", grants: [{role: viewer}]}]":                               `the hash of "", which everybody can guess`,
		"tokens: [{name: ada, sha256: " + hash("changeme\n") + ", grants: [{role: viewer}]}]":                     `the hash of "changeme", which everybody can guess`,
		"tokens: [{name: ada, secret: a}]":                                                                        "tokens[0].secret: there is no such key; allowed are name, sha256, grants",
	} {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		write(t, file, text, time.Now())
		if _, err := access.ReadTokens(file, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

package payload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRegistry_Check(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is    Registry
		wrong string
	}{
		{Registry{}, ""},
		{Registry{URL: "http://a:8081"}, ""},
		{Registry{URL: "https://a/b/", Username: "u", PasswordFile: "p"}, ""},
		{Registry{URL: "https://a", Username: "u", CAFile: "x", CertFile: "y", KeyFile: "z"}, ""},
		{Registry{TokenEnv: "t"}, "missing"},
		{Registry{URL: "a:8081"}, "form"},
		{Registry{URL: "file:///etc"}, "form"},
		{Registry{URL: "http://u:secret@a:x"}, "can't be read"},
		{Registry{URL: "http://u:secret@a"}, "apart"},
		{Registry{URL: "http://a?b"}, "?"},
		{Registry{URL: "http://a", Username: "v", Token: "t"}, "choose"},
		{Registry{URL: "http://a", TokenFile: "f", TokenEnv: "t"}, "two ways"},
		{Registry{URL: "http://a", PasswordEnv: "p"}, "without its user"},
		{Registry{URL: "https://a", CertFile: "p"}, "belong together"},
		{Registry{URL: "http://a", CAFile: "p"}, "https://"},
	} {
		err := c.is.Check()
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%+v: %v, want %s", c.is, err, c.wrong)
		}
	}
}

// A file is read anew, since tokens change; no error has what a variable's name may be by mistake.
func TestRegistry_SecretIsThatOfNow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	r := Registry{URL: "https://a", TokenFile: file}
	for _, want := range []string{"first", "second", ""} {
		if err := os.WriteFile(file, []byte(want+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Secret(); got != want || (err == nil) != (want != "") {
			t.Errorf("the secret is %q, %v, want %q", got, err, want)
		}
	}
	r = Registry{URL: "https://a", TokenEnv: "SIDING_NO_SUCH_hunter2"}
	if _, err := r.Secret(); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a variable that is not set: %v", err)
	}
	if (&Registry{URL: "https://a"}).Sends() || !r.Sends() {
		t.Error("whether a secret is sent is not known")
	}
}

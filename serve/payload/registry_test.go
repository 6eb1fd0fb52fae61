package payload

import (
	"strings"
	"testing"
)

func TestRegistry_Parse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is                   Registry
		address, user, wrong string
	}{
		{Registry{URL: "http://a:8081"}, "http://a:8081", "", ""},
		{Registry{URL: "https://u:p%40@a/b/"}, "https://a/b/", "u p@", ""},
		{Registry{URL: "https://a", Username: "u", CAFile: "x", CertFile: "y", KeyFile: "z"}, "https://a", "u ", ""},
		{Registry{}, "", "", "form"},
		{Registry{URL: "a:8081"}, "", "", "form"},
		{Registry{URL: "file:///etc"}, "", "", "form"},
		{Registry{URL: "http://u:secret@a:x"}, "", "", "can't be read"},
		{Registry{URL: "http://a?b"}, "", "", "?"},
		{Registry{URL: "http://u@a", Username: "v"}, "", "", "twice"},
		{Registry{URL: "http://u@a", Token: "t"}, "", "", "choose"},
		{Registry{URL: "http://a", Password: "p"}, "", "", "without its user"},
		{Registry{URL: "https://a", CertFile: "p"}, "", "", "belong together"},
		{Registry{URL: "http://a", CAFile: "p"}, "", "", "https://"},
	} {
		address, whole, err := c.is.Parse()
		user := strings.TrimSuffix(whole.Username+" "+whole.Password, " ")
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v, want %s", c.is, err, c.wrong)
			}
		case err != nil || address != c.address || user != strings.TrimSuffix(c.user, " "):
			t.Errorf("%+v: %s, %q, %v, want %s, %q", c.is, address, user, err, c.address, c.user)
		}
	}
}

package access_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// asBrowsersRead returns an address as browsers take it: without blanks around it and line breaks
// within, and with / for \.
func asBrowsersRead(address string) string {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	return strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(address)
}

// Whatever an attacker writes into a link for signing in, it leads no user to another site.
func FuzzBack_StaysHere(f *testing.F) {
	for _, path := range []string{
		"", "/", "/topics/a?class=b%2Fc&x=//y#z", "//evil.example", `/\evil.example`, `\/evil.example`, "/\t/evil.example", "/ /evil.example", "https://evil.example", "https:evil.example", "javascript:x",
		"/%2f/evil.example", "/..//evil.example", "/.//evil.example", "///evil.example", " //evil.example", "/\x00/evil.example", "/\u2044/evil.example", "@evil.example", "/@evil.example", "?x", "http:///evil.example",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		back := access.Back(path)
		if back != "" && back != path {
			t.Errorf("%q became %q", path, back)
		}
		if to := asBrowsersRead(back); back != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
			t.Errorf("%q leads to %q", path, to)
		}
	})
}

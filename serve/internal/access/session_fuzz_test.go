package access

import (
	"strings"
	"testing"
)

// A cookie comes from any sender. Nothing but what the server sealed under this name is opened.
func FuzzSealer_OpensItsOwnOnly(f *testing.F) {
	s, err := newSealer([]byte(strings.Repeat("k", 32)))
	if err != nil {
		f.Fatal(err)
	}
	own, err := s.seal("session", session{Name: "ada", Groups: []string{"oncall"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", own, own[1:], own[:len(own)-1], own + "A", "AAAA", "%%", strings.Repeat("A", 5000)} {
		f.Add("session", text)
	}
	f.Add("login", own)
	f.Fuzz(func(t *testing.T, name, text string) {
		var got session
		if err := s.open(name, text, &got); err == nil && (name != "session" || strings.TrimRight(text, "\r\n") != own && strings.NewReplacer("\r", "", "\n", "").Replace(text) != own || got.Name != "ada") {
			t.Errorf("%q was opened as %s: %+v", text, name, got)
		}
	})
}

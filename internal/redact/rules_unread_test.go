package redact

import "testing"

func TestRules_HideAllThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		paths, patterns, value, want string
	}{
		{"card", "", "\x00a", "[redacted] 2 bytes that cannot be read by their schema"},
		{"card", "4111", "\x00a", "[redacted] 2 bytes that cannot be read by their schema"},
		{"", "a", "\x00a", "\x00a"},
		{"card", "", "", ""},
	} {
		if got, hidden := rules(t, c.paths, "", c.patterns).Unread([]byte(c.value)); string(got) != c.want || hidden != (c.want != c.value) {
			t.Errorf("%+v: %s, %v", c, got, hidden)
		}
	}
}

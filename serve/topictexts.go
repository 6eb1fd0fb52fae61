package serve

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what the configuration says of a topic to people, in bytes.
const (
	mostOwner   = 200
	mostRunbook = 1_000
	mostNote    = 500
)

// checkTexts checks what the configuration says of topics in words. Pages and messages show it, so it has no characters that a person cannot see.
func checkTexts(t *Topic, wrong func(key, format string, args ...any)) {
	if _, ok := criticalities[t.criticality()]; !ok {
		wrong("criticality", "%q: critical, high, normal, low or minor", t.Criticality)
	}
	for _, text := range []struct {
		key, text string
		most      int
	}{{"owner", t.Owner, mostOwner}, {"runbook", t.Runbook, mostRunbook}, {"note", t.Note, mostNote}} {
		switch {
		case len(text.text) > text.most:
			wrong(text.key, "it has %d bytes, and at most %d are allowed", len(text.text), text.most)
		case !utf8.ValidString(text.text) || strings.ContainsFunc(text.text, func(r rune) bool { return !unicode.IsPrint(r) }):
			wrong(text.key, "%q has line breaks or other characters that cannot be seen", text.text)
		}
	}
	if t.Runbook == "" {
		return
	}
	if u, err := url.Parse(t.Runbook); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(t.Runbook, " ") {
		wrong("runbook", "%.200q is no URL such as https://wiki.example.com/orders: http or https, without a name and password", t.Runbook)
	}
}

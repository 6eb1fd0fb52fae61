package onend

import (
	"strings"
	"testing"
)

// A run may take hours: what could never be called is found before it begins. No message has a
// URL's path or password, which may be secrets.
func TestParse_RefusesWhatCannotBeCalled(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"https://hooks.example.com/T0/hunter2": "",
		"HTTP://localhost:8080":                "",
		"notify-send done":                     "",
		"curl -d @- https://example.com":       "",
		"ftp://example.com/hunter2":            "begins with http:// or https://, not with ftp://",
		"http:///hunter2":                      "the URL has no host",
		"http://:80/":                          "the URL has no host",
		"http://exa mple.com/hunter2":          "no URL that can be parsed",
		"https://user:hunter2@example.com/":    "a secret must not be a flag's value",
		"https://example.com:443/hunter2":      "",
		"http://example.com:99999/hunter2":     "the URL's port is 99999: a port is from 1 to 65535",
		"http://example.com:0/hunter2":         "the URL's port is 0:",
		"http:/example.com/hunter2":            `"http:/e" begins no URL`,
		"HTTPS:example.com/hunter2":            `"HTTPS:e" begins no URL`,
		" https://example.com/hunter2":         `" https:" begins no URL, which is http://HOST/PATH without blanks around it`,
		"https:":                               `"https:" begins no URL`,
		" true":                                "",
	} {
		to, err := Parse(text)
		wants(t, err, says, text)
		if err != nil && (strings.Contains(err.Error(), "hunter2") || !to.IsZero()) {
			t.Errorf("%s: %v, %v", text, to, err)
		}
	}
	to, _ := Parse("https://hooks.example.com/T0/hunter2")
	if got := to.String(); got != "https://hooks.example.com" {
		t.Errorf("it is named %s", got)
	}
}

package failure

import (
	"regexp"
	"strings"

	"github.com/sidingkafka/siding/internal/redact"
)

// addresses match what Go's network errors say of addresses. A user who may not connect to the
// brokers must not see them.
var addresses = []struct {
	is   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`\b(dial|read|write) ((?:tcp|udp)[46]?) \S+: `), "$1 $2: "},
	{regexp.MustCompile(`\blookup \S+?(?: on \S+)?: `), "lookup: "},
	{regexp.MustCompile(`\bcertificate is (?:not )?valid for .*`), "certificate is for another name"},
}

// Text returns the text of an error on one line, without addresses of brokers.
func Text(err error) string {
	return Clean(strings.ReplaceAll(err.Error(), "\n", "; ")) // joined errors have a line each
}

// Clean returns a text that may quote errors, without addresses of brokers.
func Clean(text string) string {
	for _, a := range addresses {
		text = a.is.ReplaceAllString(text, a.says)
	}
	return text
}

// Outside returns a text that quotes errors as it may leave the server: errors may quote letters,
// and name the brokers' addresses. What people wrote has no addresses, and is only redacted.
func Outside(hidden *redact.Rules, text string) string { return hidden.Text(Clean(text)) }

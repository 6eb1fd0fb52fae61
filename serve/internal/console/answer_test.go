package console

import (
	"strings"
	"testing"
)

// The words of an error may quote a letter. What the server hides is hidden in them, too: on a page
// of its own, and on that of a form.
func TestAnswer_HidesInErrors(t *testing.T) {
	t.Parallel()
	data := newArchive(texts{class: "decode", message: "m", value: "v", name: "billing"})
	data.hidden = "expired"
	c := open(t, data)
	for _, path := range []string{"/topics/orders.dlq/letters/1/404", "/topics/orders.dlq/letters/1/404/redrive"} {
		if page := ask(c, "GET", path).Body.String(); strings.Contains(page, "it expired") || !strings.Contains(page, "it [redacted]") {
			t.Errorf("%s: %s", path, page)
		}
	}
}

package onend

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// told calls a target, and returns what its command wrote.
func told(t *testing.T, target string, patience time.Duration, env ...string) (words string, err error) {
	t.Helper()
	to, err := Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = to.call(t.Context(), Call{Body: []byte(`{"run":"orders.dlq/r-1"}`), Env: env, Secrets: []string{"SECRET"}, Words: &out}, patience)
	return out.String(), err
}

// wants checks that an error has a text; of an empty text, that there is none.
func wants(t *testing.T, err error, text string, about ...any) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("%v: %v, want %q", about, err, text)
	}
}

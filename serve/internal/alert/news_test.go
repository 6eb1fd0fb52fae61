package alert

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/incident"
)

// A pager closes by its key what it opened. The key hashed the link, which is by default the
// address of the server that notifies, so what one server opened stayed open when another one
// notified of its end.
func TestNews_TheKeyIsOfTheIncidentAlone(t *testing.T) {
	t.Parallel()
	begun := incident.State{Severity: incident.Page, Text: "12 letters open", Since: time.Date(2026, 11, 22, 1, 40, 0, 7, time.UTC)}
	over := begun
	over.Over, over.Text, over.Since = begun.Since.Add(time.Hour), "1 letter open", begun.Since.In(time.FixedZone("", 3600))
	is := newsOf("https://a.example.com", "a.dlq", "open", &begun).Key
	if got := newsOf("http://10.0.0.7:8642/x", "a.dlq", "open", &over).Key; got != is {
		t.Errorf("the key of the end is %s, that of the beginning %s", got, is)
	}
	later := begun
	later.Since = later.Since.Add(time.Nanosecond)
	for _, other := range []notifyKey{{"a.dlq", "oldest", &begun}, {"b.dlq", "open", &begun}, {"a.dlq", "open", &later}} {
		if got := newsOf("https://a.example.com", other.topic, other.kind, other.of).Key; got == is {
			t.Errorf("another incident, %+v, has the key %s", other, got)
		}
	}
}

type notifyKey struct {
	topic, kind string
	of          *incident.State
}

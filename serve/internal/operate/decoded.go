package operate

import (
	"bytes"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/payload"
)

// besides returns the own bytes of a key or a value, which stand beside what they say: a mark if
// something of that is hidden, since the bytes say it too.
func besides(rules *redact.Rules, own, shown []byte, d *payload.Decoded) []byte {
	if bytes.Equal(shown, d.JSON) && (rules == nil || rules.Text(string(own)) == string(own)) {
		return own
	}
	return []byte(redact.Mark)
}

// decodedOf returns what a key or a value says, as far as there is room for it.
func decodedOf(shown []byte, d *payload.Decoded, show func(string, []byte) api.Bytes) *api.Decoded {
	is := show("", shown)
	text := ""
	if is.Text != nil {
		text = *is.Text
	}
	return &api.Decoded{JSON: text, Size: len(shown), Cut: is.Cut, Kind: string(d.Kind), Type: d.Type, Schema: d.ID, GUID: d.GUID}
}

package operate

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/payload"
)

// What the API shows of a letter, in bytes of JSON: of all that it carries, and of each part.
// redrive show has more.
const (
	mostContent = 2 << 20
	mostShown   = 1 << 20
)

// contentOf returns what a letter's record carries, as much of it as may be shown, without siding's
// own headers.
func contentOf(rules *redact.Rules, r, shown *kgo.Record, how *payload.Reading) *api.Content {
	left := mostContent
	show := func(name string, b []byte) api.Bytes {
		is, length := bytesOf(b, max(min(left, mostShown), 0))
		left -= length + len(name) + len(`{"key":"","value":{"text":,"base64":null,"size":1048576}},`)
		return is
	}
	side := func(own, shown []byte, d *payload.Decoded, err error) (is api.Bytes) {
		if d == nil {
			is = show("", shown)
		} else {
			said := decodedOf(shown, d, show) // before the bytes take the room
			is = show("", besides(rules, own, shown, d))
			is.Decoded = said
		}
		if err != nil {
			is.Problem = err.Error()
		}
		return is
	}
	c := &api.Content{Value: side(r.Value, shown.Value, how.Value, how.ValueErr), Key: side(r.Key, shown.Key, how.Key, how.KeyErr), Headers: []api.Header{}}
	all := headers.Strip(shown.Headers)
	for i, h := range all {
		value := show(h.Key, h.Value)
		if left <= 0 {
			c.MoreHeaders = len(all) - i
			break
		}
		c.Headers = append(c.Headers, api.Header{Key: h.Key, Value: value})
	}
	return c
}

// bytesOf shows as many bytes as take at most so many bytes of JSON, and returns how many these
// are.
func bytesOf(b []byte, most int) (is api.Bytes, length int) {
	if b == nil {
		return api.Bytes{}, 0
	}
	is.Size = len(b)
	b = b[:min(len(b), most)]
	// A character may have been cut.
	for n := 1; n < utf8.UTFMax && len(b) < is.Size && len(b) >= n; n++ {
		if whole := b[:len(b)-n]; !utf8.Valid(b) && utf8.Valid(whole) {
			b = whole
		}
	}
	if utf8.Valid(b) {
		text := string(b)
		for i, r := range text {
			if length += jsonLength(r); length > most {
				text = text[:i]
				break
			}
		}
		is.Text, is.Cut = &text, len(text) < is.Size
		return is, length
	}
	is.Base64 = b[:min(len(b), base64.StdEncoding.DecodedLen(most))]
	is.Cut = len(is.Base64) < is.Size
	return is, base64.StdEncoding.EncodedLen(len(is.Base64))
}

// jsonLength returns how many bytes a character takes in a string of JSON.
func jsonLength(r rune) int {
	switch {
	case r < ' ', strings.ContainsRune("<>&\u2028\u2029", r):
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// timeOr returns nil for the zero time.
func timeOr(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

package operate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/payload"
)

// A letter costs the API at most 16 times its bytes and 4 MiB, whatever it carries. An answer
// has the beginning of each part, and says what is missing.
func FuzzContentOf_CostsWhatItsBytesDo(f *testing.F) {
	for _, unit := range []string{"v", "\x01", `"`, "<", "\xff", "ä", "\u2028", "ä\xff"} {
		f.Add([]byte(unit), uint32(1), "k", []byte("v"), uint16(3))
		f.Add([]byte(unit), uint32(3<<20), "k", []byte("v"), uint16(60_000))
		f.Add([]byte("v"), uint32(1), unit, bytes.Repeat([]byte(unit), 3000), uint16(999))
	}
	f.Fuzz(func(t *testing.T, unit []byte, n uint32, key string, header []byte, headers uint16) {
		if strings.HasPrefix(key, "dlq-") {
			t.Skip("siding's own headers are no content")
		}
		l := &dlq.Letter{Record: &kgo.Record{Value: bytes.Repeat(unit, min(int(n), 4<<20)/max(len(unit), 1))}}
		l.Record.Key = l.Record.Value[:len(l.Record.Value)/2]
		for range min(int(headers), 8<<20/(len(key)+len(header)+1)) {
			l.Record.Headers = append(l.Record.Headers, kgo.RecordHeader{Key: key, Value: header})
		}
		size := len(l.Record.Value) + len(l.Record.Key) + len(l.Record.Headers)*(len(key)+len(header)+2)
		c := contentOf(nil, l.Record, l.Record, &payload.Reading{})
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if most := min(16*size+512, 4<<20); len(text) > most {
			t.Errorf("%d bytes with %d headers are %d of JSON", size, len(l.Record.Headers), len(text))
		}
		if len(c.Headers)+c.MoreHeaders != len(l.Record.Headers) {
			t.Errorf("%d headers and %d more, of %d", len(c.Headers), c.MoreHeaders, len(l.Record.Headers))
		}
		shows(t, "value", c.Value, l.Record.Value)
		shows(t, "key", c.Key, l.Record.Key)
		for _, h := range c.Headers {
			shows(t, "header", h.Value, header)
		}
	})
}

func shows(t *testing.T, part string, is api.Bytes, of []byte) {
	t.Helper()
	data := is.Base64
	if is.Text != nil {
		data = []byte(*is.Text)
	}
	if !bytes.HasPrefix(of, data) || is.Size != len(of) || is.Cut != (len(data) < len(of)) || (of == nil) != (is.Text == nil && is.Base64 == nil) {
		t.Fatalf("%s of %d bytes %.20q: %d bytes %.20q are shown, size %d, cut %v", part, len(of), of, len(data), data, is.Size, is.Cut)
	}
}

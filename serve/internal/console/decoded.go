package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
)

// said returns what bytes say by their schema; the bytes themselves, if none describes them.
func said(b api.Bytes) api.Bytes {
	d := b.Decoded
	if d == nil {
		return b
	}
	return api.Bytes{Text: &d.JSON, Size: d.Size, Cut: d.Cut}
}

// decodedOf is [contentOf] what bytes say; in hexadecimal it shows the bytes themselves.
func decodedOf(b api.Bytes, as string, most int) content {
	c := contentOf(said(b), as, most)
	if d := b.Decoded; d != nil {
		if as == asHex {
			ways := c.Ways
			c = contentOf(b, asHex, most)
			c.Ways = ways
		}
		c.Size = size(b.Size)
		c.Schema = strings.TrimSpace(fmt.Sprintf("%s %s", d.Kind, d.Type)) + ", schema " + cmp.Or(d.GUID, fmt.Sprint(d.Schema))
	}
	c.Undecoded = b.Problem
	return c
}

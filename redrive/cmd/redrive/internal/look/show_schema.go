package look

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/serve/payload"
)

// schemaText names the schema of a value for people.
func schemaText(d *payload.Decoded) string {
	name := cmp.Or(d.GUID, fmt.Sprint(d.ID))
	return strings.TrimSpace(fmt.Sprintf("%s %s", d.Kind, output.Escape(d.Type))) + ", schema " + name
}

// schemaField is the schema of a key or a value for programs.
func schemaField(d *payload.Decoded) any {
	if d == nil {
		return nil
	}
	return struct {
		Kind payload.Kind `json:"kind"`
		Type string       `json:"type"`
		ID   int          `json:"id,omitempty"`
		GUID string       `json:"guid,omitempty"`
	}{d.Kind, d.Type, d.ID, d.GUID}
}

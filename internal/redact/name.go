package redact

// Which header a rule's name covers.

import (
	"strings"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// covers reports whether the name of a header covers another one: that of dlq-meta covers all
// headers that are its fields today.
func covers(name, header string) bool {
	return strings.EqualFold(name, header) || strings.EqualFold(name, headers.MetaFields) && reserved.Of(header).FieldName() != ""
}

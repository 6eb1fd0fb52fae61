package look

import (
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// How much of a letter is shown to people, in bytes: of its value, of its key and of its headers;
// and of one header.
const (
	mostOfPart   = 512 << 10
	mostOfHeader = 16 << 10
)

func headerLines(l *dlq.Letter, as output.Rendering) string {
	var b strings.Builder
	fmt.Fprintf(&b, "key:\n%s\n\nheaders (%d):\n", indent(as.Lines(l.Record.Key, mostOfPart)), len(l.Record.Headers))
	for i, h := range l.Record.Headers {
		if b.Len() > 2*mostOfPart {
			fmt.Fprintf(&b, "  … and %d more, which --output json has\n", len(l.Record.Headers)-i)
			break
		}
		key, value := output.Escape(h.Key[:min(len(h.Key), mostOfHeader)]), as.OfHeaders().Lines(h.Value, mostOfHeader)
		if !strings.Contains(value, "\n") {
			fmt.Fprintf(&b, "  %s: %s\n", key, value)
			continue
		}
		fmt.Fprintf(&b, "  %s:\n%s\n", key, indent(indent(value)))
	}
	return b.String()
}

func valueLines(l *dlq.Letter, as output.Rendering, size string) string {
	if l.Meta.ValueOmitted {
		return fmt.Sprintf("value: omitted since it did not fit; the original is at %s\n", output.Escape(l.Meta.Original.String()))
	}
	return fmt.Sprintf("value, %s:\n%s\n", size, indent(as.Lines(l.Record.Value, mostOfPart)))
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

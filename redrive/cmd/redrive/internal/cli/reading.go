package cli

// What the schema registry makes of letters.

import (
	"context"
	"fmt"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/payload"
	"github.com/sidingkafka/siding/serve/registry"
)

// openRegistry opens the schema registry, if there is one. Nothing is asked before a letter needs
// it.
func openRegistry(t *Tool, is payload.Registry) (end func(), err error) {
	if is.URL == "" {
		return func() {}, nil
	}
	r, err := registry.Open(is)
	if err != nil {
		return nil, Usage(fmt.Errorf("schema registry: %w", err))
	}
	t.Codec = r
	return r.Close, nil
}

// Unread counts the letters that could not be decoded.
type Unread struct {
	n     int
	first string
}

// Add counts one that was read with an error.
func (u *Unread) Add(l *dlq.Letter, err error) {
	if err == nil {
		return
	}
	if u.n++; u.n == 1 {
		u.first = fmt.Sprintf("%d:%d: %v", l.Record.Partition, l.Record.Offset, err)
	}
}

// Warn says how many they are.
func (u *Unread) Warn(t *Tool) {
	if u.n > 0 {
		t.Screen.Warn("%s could not be decoded; the first: %s", Letters(int64(u.n)), u.first)
	}
}

// Read returns a letter as it may be shown, decoded and redacted. hidden reports that something of
// its value is hidden.
func Read(ctx context.Context, t *Tool, l *dlq.Letter) (shown *dlq.Letter, hidden bool, how payload.Reading) {
	return payload.Shown(ctx, t.Codec, t.Redaction, l)
}

package dlq

// The readers of letters, with dialects of the caller's choice.

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read is the function [Read] with these dialects in place of the built-in ones.
func (d *Dialects) Read(ctx context.Context, topic string, f Filter, from Cursor, opts ...kgo.Opt) iter.Seq2[*Letter, error] {
	return readBy(ctx, d, topic, f, from, opts)
}

// Ledger is [NewLedger] with these dialects in place of the built-in ones.
func (d *Dialects) Ledger(topic, ledger string, opts ...kgo.Opt) *Ledger {
	l := NewLedger(topic, ledger, opts...)
	l.dialects = d
	return l
}

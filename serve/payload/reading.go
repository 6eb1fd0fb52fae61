package payload

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/redact"
)

// Reading is how a letter was read.
type Reading struct {
	Key, Value       *Decoded // nil where no schema describes the bytes, or after an error
	KeyErr, ValueErr error    // each is one line
}

// Err is the error of the value, or else of the key, which it names.
func (r *Reading) Err() error {
	return cmp.Or(of(Value, r.ValueErr), of(Key, r.KeyErr))
}

func of(side Side, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", side, err)
}

// Letter returns a letter with JSON for key and value, so that expressions, redaction and the
// screen treat what they say as they treat JSON. The letter itself stays as it is, and is returned
// if there is nothing to read, or no codec.
func Letter(ctx context.Context, c Codec, l *dlq.Letter) (*dlq.Letter, Reading) {
	var how Reading
	if c == nil {
		return l, how
	}
	how.Value, how.ValueErr = c.Decode(ctx, l.Record, Value)
	how.Key, how.KeyErr = c.Decode(ctx, l.Record, Key)
	if how.Key == nil && how.Value == nil {
		return l, how
	}
	read, record := *l, *l.Record
	read.Record = &record
	if how.Key != nil {
		record.Key = how.Key.JSON
	}
	if how.Value != nil {
		record.Value = how.Value.JSON
	}
	return &read, how
}

// Shown is [Letter] without what rules hide. Where a schema describes a key or a value that cannot
// be read, paths hide all of it, since nobody knows whether they lead into it. hidden reports that
// a part of the value is hidden. Then the letter's own bytes must not be shown either.
func Shown(ctx context.Context, c Codec, rules *redact.Rules, l *dlq.Letter) (shown *dlq.Letter, hidden bool, how Reading) {
	read, how := Letter(ctx, c, l)
	shown, hidden = rules.Letter(read)
	if rules == nil || how.Err() == nil {
		return shown, hidden, how
	}
	if how.ValueErr != nil {
		how.ValueErr = unquoted(rules, how.ValueErr)
		if mark, all := rules.Unread(l.Record.Value); all {
			shown.Record.Value, hidden = mark, true
		}
	}
	if how.KeyErr != nil {
		how.KeyErr = unquoted(rules, how.KeyErr)
		if mark, all := rules.Unread(l.Record.Key); all {
			shown.Record.Key = mark
		}
	}
	return shown, hidden, how
}

// MisfitError is about bytes that their schema does not fit. Its cause may quote them.
type MisfitError struct {
	Schema string
	Cause  string
}

func (e *MisfitError) Error() string { return "it does not fit " + e.Schema + ": " + e.Cause }

// unquoted returns an error without what rules may hide.
func unquoted(rules *redact.Rules, err error) error {
	if misfit, ok := errors.AsType[*MisfitError](err); ok {
		return fmt.Errorf("it does not fit %s", misfit.Schema)
	}
	return errors.New(rules.Text(err.Error()))
}

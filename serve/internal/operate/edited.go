package operate

import (
	"context"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/payload"
)

// EditedLetter returns what a letter carries before and after an edit, without what is hidden.
func EditedLetter(ctx context.Context, d *Desk, who *access.Identity, in *request.Letter, e *api.Edit) (before, after *api.Content, err error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Operator)
	if err != nil {
		return nil, nil, err
	}
	edit, err := editOf(e)
	if err != nil {
		return nil, nil, err
	}
	l, _, err := findLetter(ctx, d, t, in)
	if err != nil {
		return nil, nil, err
	}
	record, edited := *l.Record, *l
	if record.Headers, record.Value, err = edit.ApplyBy(ctx, payload.ValuesOf(d.cfg.Codec), l.Record); err != nil {
		return nil, nil, failure.NewProblem(api.EditFailed, "%s", failure.Outside(d.cfg.Redact, err.Error()))
	}
	edited.Record = &record
	shown, hides, how := payload.Shown(ctx, d.cfg.Codec, d.cfg.Redact, l)
	before = contentOf(d.cfg.Redact, l.Record, shown.Record, &how)
	if !hides {
		changed, _, how := payload.Shown(ctx, d.cfg.Codec, d.cfg.Redact, &edited)
		return before, contentOf(d.cfg.Redact, &record, changed.Record, &how), nil
	}
	record.Key, record.Value = shown.Record.Key, editedHidden(&edit, shown.Record.Value)
	changed, _ := d.cfg.Redact.Letter(&edited)
	return before, contentOf(d.cfg.Redact, &record, changed.Record, &payload.Reading{}), nil
}

// editedHidden edits a value of which something is hidden, as it is shown. What the rules hide of
// the real value they might not hide after the edit: a pattern may know what stands around it.
func editedHidden(edit *redrive.Edit, shown []byte) []byte {
	_, value, err := edit.Apply(nil, shown)
	if err != nil { // with its marks it is no JSON any more
		return []byte(redact.Mark)
	}
	return value
}

package operate

import (
	"context"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
	"github.com/sidingkafka/siding/serve/payload"
)

// GetLetter returns a letter with its history, and to readers what it carries.
func GetLetter(ctx context.Context, d *Desk, who *access.Identity, in *request.Letter) (api.LetterDetail, error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Viewer)
	if err != nil {
		return api.LetterDetail{}, err
	}
	l, notes, err := findLetter(ctx, d, t, in)
	if err != nil {
		return api.LetterDetail{}, err
	}
	frame := classify.Place(l.Meta.Stack) // code, which nothing hides
	shown, redacted, how := payload.Shown(ctx, d.cfg.Codec, d.cfg.Redact, l)
	is := detailOf(shown, d.cfg.Redact.Records(notes))
	is.Redacted, is.Frame = redacted, frame
	if who.On(in.Topic.Topic) >= access.Reader {
		is.Content = contentOf(d.cfg.Redact, l.Record, shown.Record, &how)
	}
	return is, nil
}

// findLetter reads a letter, and what its ledger has about it.
func findLetter(ctx context.Context, d *Desk, t *watch.Topic, in *request.Letter) (l *dlq.Letter, notes []*dlq.LedgerRecord, err error) {
	l, err = Attend(ctx, d, t, func(ctx context.Context) (l *dlq.Letter, err error) {
		l, notes, err = dlq.NewLedger(in.Topic.Topic, t.Ledger, d.cfg.Kafka...).Find(ctx, in.Partition, in.Offset)
		return l, err
	})
	return l, notes, err
}

// detailOf returns a letter as the API shows it to viewers.
func detailOf(l *dlq.Letter, notes []*dlq.LedgerRecord) api.LetterDetail {
	m := &l.Meta
	d := api.LetterDetail{
		Letter: api.Letter{
			Partition: l.Record.Partition, Offset: l.Record.Offset, State: string(l.State), FailedAt: l.FailedAt().UTC(), EnteredAt: l.Record.Timestamp.UTC(),
			Class: m.Class, Fingerprint: m.Fingerprint, Reason: string(m.Reason), Group: m.Group, Version: m.Version, Dialect: l.Dialect,
		},
		Message: m.Message, Stack: m.Stack, Attempts: m.Attempts, Original: *positionOf(m.Original), ProducedAt: timeOr(m.Original.Timestamp), FirstFailedAt: timeOr(m.FirstFailedAt),
		History: []api.Attempt{}, Ledger: []api.LedgerEntry{}, TraceParent: m.TraceParent, Environment: m.Environment, Host: m.Host,
	}
	if m.Redrive.ID != "" {
		d.Redriven = &api.Redriven{Run: m.Redrive.ID, Count: m.Redrive.Count, From: *positionOf(m.Redrive.From), At: timeOr(m.Redrive.At)}
	}
	for _, a := range m.History {
		d.History = append(d.History, api.Attempt{Number: a.Number, Call: a.Run, Class: a.Class, At: a.At.UTC(), Verdict: a.Verdict, Message: a.Message})
	}
	for _, n := range notes {
		if n.Err != nil {
			continue
		}
		e := api.LedgerEntry{State: string(n.Entry.State), At: n.Entry.At.UTC(), By: n.Entry.By, Why: n.Entry.Why, Run: n.Entry.Run, Class: n.Entry.Class, Edited: n.Entry.Edited}
		if e.At = n.Entry.At.UTC(); n.Entry.At.IsZero() {
			e.At = n.Record.Timestamp.UTC()
		}
		if n.Entry.Target.Topic != "" {
			e.Target = positionOf(n.Entry.Target)
		}
		d.Ledger = append(d.Ledger, e)
	}
	return d
}

func positionOf(p headers.Position) *api.Position {
	return &api.Position{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}
}

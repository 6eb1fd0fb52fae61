package serve

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// mostShown bounds what is shown of a key, a header or a value, in bytes.
const mostShown = 1 << 20

// LetterInput names a letter.
type LetterInput struct {
	TopicInput
	Partition int32 `path:"partition" minimum:"0"`
	Offset    int64 `path:"offset" minimum:"0"`
}

type letterOutput struct{ Body api.LetterDetail }

func (s *Server) getLetter(ctx context.Context, in *LetterInput) (*letterOutput, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	l, notes, err := dlq.NewLedger(in.Topic, t.Ledger, s.cfg.Kafka...).Find(ctx, in.Partition, in.Offset)
	switch {
	case errors.Is(err, dlq.ErrNoLetter):
		return nil, problem(http.StatusNotFound, "no-letter", "%v", err)
	case err != nil:
		return nil, problem(http.StatusBadGateway, "kafka", "%v", err)
	}
	l, redacted := s.redact.Letter(l)
	out := &letterOutput{detailOf(l, s.redact.Notes(notes))}
	out.Body.Redacted = redacted
	if identityOf(ctx).On(in.Topic) >= access.Reader {
		out.Body.Content = contentOf(l)
	}
	return out, nil
}

// detailOf returns a letter as the API shows it to viewers.
func detailOf(l *dlq.Letter, notes []*dlq.LedgerRecord) api.LetterDetail {
	m := &l.Meta
	d := api.LetterDetail{
		Letter: api.Letter{
			Partition: l.Record.Partition, Offset: l.Record.Offset, State: string(l.State), FailedAt: l.FailedAt().UTC(), EnteredAt: l.Record.Timestamp.UTC(),
			Class: m.Class, Fingerprint: m.Fingerprint, Reason: string(m.Reason), Group: m.Group, Version: m.Version,
		},
		Message: m.Message, Stack: m.Stack, Attempts: m.Attempts, Original: *positionOf(m.Original), FirstFailedAt: timeOr(m.FirstFailedAt),
		History: []api.Attempt{}, Ledger: []api.LedgerEntry{}, TraceParent: m.TraceParent,
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

// contentOf returns what a letter carries, without siding's own headers.
func contentOf(l *dlq.Letter) *api.Content {
	c := &api.Content{Key: bytesOf(l.Record.Key), Value: bytesOf(l.Record.Value), Headers: []api.Header{}}
	for _, h := range headers.Strip(l.Record.Headers) {
		c.Headers = append(c.Headers, api.Header{Key: h.Key, Value: bytesOf(h.Value)})
	}
	return c
}

func bytesOf(b []byte) api.Bytes {
	if b == nil {
		return api.Bytes{}
	}
	is := api.Bytes{Size: len(b)}
	if len(b) > mostShown {
		b, is.Cut = b[:mostShown], true
		for n := 1; n < utf8.UTFMax; n++ { // a character may have been cut
			if whole := b[:len(b)-n]; !utf8.Valid(b) && utf8.Valid(whole) {
				b = whole
			}
		}
	}
	if utf8.Valid(b) {
		text := string(b)
		is.Text = &text
	} else {
		is.Base64 = b
	}
	return is
}

package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

const (
	mostAround = 100
	// aroundTime is how long neighbours are read. An open transaction can hold them back.
	aroundTime = 20 * time.Second
)

// A neighbourhood is the records around a letter's original position.
type neighbourhood struct {
	at      headers.Position
	records []*kgo.Record
	missing string // why the original is not among them, or why there are none
}

// findAround reads the neighbours of a letter on its source: as many offsets before and after it.
// An error is one of reading; that the records are gone is none.
func findAround(ctx context.Context, s *cli.Session, at headers.Position, n int64) (*neighbourhood, error) {
	found := &neighbourhood{at: at}
	if at.Topic == "" {
		found.missing = "the letter does not say where it was first read: siding did not write it, or its headers are broken"
		return found, nil
	}
	if at.Partition < 0 || at.Offset < 0 { // of another program
		found.missing = "the letter does not say at which offset of " + at.Topic + " it was first read"
		return found, nil
	}
	start, end, gone, err := boundsAt(ctx, s, at)
	if err != nil || gone != "" {
		found.missing = gone
		return found, err
	}
	r := dlq.Range{Partition: at.Partition, From: max(start, at.Offset-n), Until: min(end, at.Offset+n+1)}
	if r.From < r.Until {
		ctx, cancel := context.WithTimeoutCause(ctx, aroundTime, errors.New("it took longer than 20 s, perhaps because of an open transaction"))
		defer cancel()
		for record, err := range dlq.Records(ctx, at.Topic, []dlq.Range{r}, s.Kafka...) {
			if err != nil {
				return found, cli.OnTopic("READ", at.Topic, err)
			}
			found.records = append(found.records, record)
		}
	}
	switch {
	case slices.ContainsFunc(found.records, func(r *kgo.Record) bool { return r.Offset == at.Offset }):
	case at.Offset < start:
		found.missing = fmt.Sprintf("the original is gone: retention or somebody deleted it, and %s/%d now begins at %d", at.Topic, at.Partition, start)
	case at.Offset >= end:
		found.missing = fmt.Sprintf("the original is gone: %s/%d ends at %d", at.Topic, at.Partition, end)
	default:
		found.missing = fmt.Sprintf("the original is gone: there is no record at %d any more, as after compaction", at.Offset)
	}
	return found, nil
}

// boundsAt is where a source's partition begins and ends, or why it has nothing of the letter's.
func boundsAt(ctx context.Context, s *cli.Session, at headers.Position) (start, end int64, gone string, err error) {
	fail := func(err error) (int64, int64, string, error) { return 0, 0, "", cli.OnTopic("DESCRIBE", at.Topic, err) }
	topics, err := s.Admin.ListTopics(ctx, at.Topic)
	if err != nil {
		return fail(err)
	}
	detail := topics[at.Topic]
	switch {
	case errors.Is(detail.Err, kerr.UnknownTopicOrPartition):
		return 0, 0, fmt.Sprintf("the source %s does not exist any more", at.Topic), nil
	case detail.Err != nil:
		return fail(detail.Err)
	case at.TopicID != [16]byte{} && detail.ID != [16]byte{} && at.TopicID != detail.ID:
		return 0, 0, fmt.Sprintf("the source %s was recreated: what is there now has nothing to do with the letter", at.Topic), nil
	}
	starts, err1 := s.Admin.ListStartOffsets(ctx, at.Topic)
	ends, err2 := s.Admin.ListEndOffsets(ctx, at.Topic)
	if err := errors.Join(err1, err2); err != nil {
		return fail(err)
	}
	from, ok1 := starts.Lookup(at.Topic, at.Partition)
	to, ok2 := ends.Lookup(at.Topic, at.Partition)
	if !ok1 || !ok2 {
		return 0, 0, fmt.Sprintf("the source %s has no partition %d", at.Topic, at.Partition), nil
	}
	if err := errors.Join(from.Err, to.Err); err != nil {
		return fail(err)
	}
	return from.Offset, to.Offset, "", nil
}

// rows are the neighbours. A table marks the original.
func (n *neighbourhood) rows(ctx context.Context, t *cli.Tool) output.Rows {
	return output.RowsOf(n.records, func(r *kgo.Record) []output.Field {
		original := r.Offset == n.at.Offset
		mark := fmt.Sprint(r.Offset)
		if original {
			mark = "> " + mark
		}
		shown, redacted, _ := cli.Read(ctx, t, &dlq.Letter{Record: r})
		key, keyEncoding := output.Text.Value(shown.Record.Key)
		var keyCell any
		if r.Key != nil {
			keyCell = output.Pair{Table: string(shown.Record.Key), JSON: key}
		}
		field := output.NewField
		fields := []output.Field{
			field("offset", "OFFSET", output.Pair{Table: mark, JSON: r.Offset}).Right(),
			field("original", "", original),
			field("timestamp", "PRODUCED", r.Timestamp),
			field("key", "KEY", keyCell).MayCut(),
			field("keyEncoding", "", keyEncoding),
		}
		return append(fields, valueFields(shown, redacted)...)
	})
}

// show prints the neighbours below the letter, in a table.
func (n *neighbourhood) show(ctx context.Context, t *cli.Tool) error {
	if t.Screen.Format != output.Table {
		return nil
	}
	if len(n.records) > 0 {
		if _, err := fmt.Fprintf(t.Screen.Data(), "\naround %s, the original position:\n", output.Escape(n.at.String())); err != nil {
			return err
		}
		if err := t.Screen.Rows(n.rows(ctx, t)); err != nil {
			return err
		}
	}
	if n.missing != "" {
		t.Screen.Print("--around: %s", n.missing)
	}
	return nil
}

package subject

// The ledger of a dead-letter topic.

import (
	"context"
	"errors"
	"fmt"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/internal/guard"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// LedgerOf returns the ledger of a dead-letter topic, of which nothing is read.
func LedgerOf(s *cli.Session, f Sibling) (*dlq.Ledger, error) {
	names, err := s.Naming.Siblings(f.Source, f.Group)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("the ledger of %s has no name by this naming: set --ledger-name: %w", f.Topic, err))
	}
	return dlq.NewLedger(f.Topic, names.Ledger, s.Kafka...), nil
}

// FindLedger is LedgerOf for a dead-letter topic by its name.
func FindLedger(ctx context.Context, s *cli.Session, topic string) (*dlq.Ledger, error) {
	f, err := FindTopic(ctx, s, topic)
	if err != nil {
		return nil, err
	}
	return LedgerOf(s, f)
}

// A Purpose is what a ledger is read for. A verb can show letters without the ledger's topic, or
// with entries that a newer siding wrote, but it can't record anything.
type Purpose int

// The purposes.
const (
	ToCount Purpose = iota // a missing ledger is not worth a line
	ToInspect
	ToWrite
)

// ReadLedger reads all entries about a topic's dead letters.
func ReadLedger(ctx context.Context, s *cli.Session, f Sibling, why Purpose) (*dlq.Ledger, error) {
	l, err := LedgerOf(s, f)
	if err != nil {
		return nil, err
	}
	name := l.Name()
	err = l.Read(ctx, cli.Progress(s.Tool, "reading "+name), nil)
	switch {
	case err != nil && (why == ToWrite || !errors.Is(err, dlq.ErrNewerVersion)):
		return nil, cli.OnTopic("READ", name, err)
	case err != nil:
		s.Screen.Warn("%v; these letters count as open", err)
		return l, nil
	}
	WarnOfBroken(s.Tool, l)
	switch {
	case l.Missing() && why == ToWrite:
		return nil, fmt.Errorf("topic %s does not exist, so nothing can be recorded about the letters of %s: create it, compacted, with as many partitions (retrytopics.Ensure does)", name, f.Topic)
	case l.Missing() && why == ToInspect:
		s.Screen.Print("%s does not exist: all letters of %s count as open", name, f.Topic)
	}
	return l, nil
}

// WarnOfBroken warns of entries that can't be read.
func WarnOfBroken(t *cli.Tool, l *dlq.Ledger) {
	n, some := l.Broken()
	if n == 0 {
		return
	}
	first := ""
	if len(some) > 0 {
		first = fmt.Sprintf("; the first: %v", some[0])
	}
	t.Screen.Warn("%s: the entries about %s can't be read, so these letters count as open%s", l.Name(), cli.Letters(n), first)
}

// IdleLedger is ReadLedger for a verb that changes something: it refuses where a run is unfinished,
// and where the user lacks an operation that the verb needs on the topic or on the ledger, so that
// the verb does all of it or nothing.
func IdleLedger(ctx context.Context, s *cli.Session, f Sibling, why Purpose, onTopic, onLedger []string) (*dlq.Ledger, error) {
	l, err := ReadLedger(ctx, s, f, why)
	if err == nil {
		err = guard.RefuseUnfinished(l)
	}
	if err == nil {
		err = permission.Check(ctx, s.Client, map[string][]string{f.Topic: onTopic, l.Name(): onLedger})
	}
	return l, err
}

// StillIdle reads the entries since the last read and refuses where a run has begun. The user may
// have taken long to answer.
func StillIdle(ctx context.Context, ledger *dlq.Ledger) error {
	if err := ledger.Read(ctx, nil, nil); err != nil && !errors.Is(err, dlq.ErrNewerVersion) {
		return cli.OnTopic("READ", ledger.Name(), err)
	}
	return guard.RefuseUnfinished(ledger)
}

// WriteOutcomes records the outcomes that letters got since their runs ended. Letters whose outcome
// will never be known are open again. An error does not stop the verb: warn prints it.
func WriteOutcomes(ctx context.Context, t *cli.Tool, r *redrive.Redriver, topic string) (warn func()) {
	t.Screen.Status("checking the outcomes of earlier runs …")
	_, err := r.WriteOutcomes(ctx, topic)
	return func() {
		if err != nil {
			t.Screen.Warn("the outcomes of earlier runs could not be recorded: %v", err)
		}
	}
}

package redrive

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// permissions returns the operations that a run needs on each topic, for the targets that are known
// so far.
func (p *Plan) permissions(watched []string) map[string][]string {
	const read, write = "READ", "WRITE"
	needs := map[string][]string{p.topics.dlq: {read}, p.topics.ledger: {read, write}}
	for _, topic := range watched {
		if topic != p.topics.dlq && topic != p.topics.ledger {
			needs[topic] = []string{read}
		}
	}
	for topic := range p.elsewhere {
		needs[topic] = []string{read}
	}
	named := p.Selection.Target.Topic
	switch {
	case !p.toTier && p.elsewhere[named]:
		needs[named] = []string{"DESCRIBE_CONFIGS", read, write}
	case !p.toTier:
		needs[named] = []string{"DESCRIBE_CONFIGS", write}
	case named != "":
		needs[named] = []string{read, write}
	default:
		for tier := range p.Targets {
			needs[tier] = []string{read, write}
		}
	}
	return needs
}

// checkPermissions checks all permissions of a run, for the targets that are known so far.
func (p *Plan) checkPermissions(ctx context.Context, cl *kgo.Client) error {
	adm := kadm.NewClient(cl)
	watched, err := p.topics.watched(ctx, adm, slices.Collect(maps.Keys(p.ByGroup)))
	if err != nil {
		return err
	}
	p.watches(watched.Names())
	if err := errors.Join(permission.Check(ctx, cl, p.permissions(watched.Names())), txn.CheckIDs(ctx, adm, p.topics.dlq)); err != nil {
		return err
	}
	if has, needs := len(watched[p.topics.ledger].Partitions), len(watched[p.topics.dlq].Partitions); has < needs {
		return p.topics.refuse(RefusedPartitions,
			"the ledger %s has %d partitions, and %s has %d: grow the ledger to as many first", p.topics.ledger, has, p.topics.dlq, needs)
	}
	return nil
}

// allLacking adds all other missing permissions to an error about a permission. It returns any
// other error unchanged.
func (p *Plan) allLacking(ctx context.Context, cl *kgo.Client, err error) error {
	if permission.Lacking(err) == nil {
		return err
	}
	return permission.Lacking(err, p.checkPermissions(ctx, cl))
}

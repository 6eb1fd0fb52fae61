package operate

import (
	"context"
	"slices"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// ListConsumers returns the consumer groups of a topic's source.
func ListConsumers(ctx context.Context, d *Desk, who *access.Identity, in *request.Topic) (api.Consumers, error) {
	t, err := TopicFor(ctx, d, who, in.Topic, access.Viewer)
	if err != nil {
		return api.Consumers{}, err
	}
	all := d.cfg.Cluster.Guards.Consumers(t.Source)
	all.Groups = append([]api.Consumer{}, all.Groups...)
	for i := range all.Groups { // what services say of themselves may quote records
		g := &all.Groups[i]
		g.Releases = redactAll(d, g.Releases)
		g.Members = slices.Clone(g.Members)
		for j := range g.Members {
			m := &g.Members[j]
			m.Releases, m.Client, m.Instance = redactAll(d, m.Releases), d.cfg.Redact.Text(m.Client), d.cfg.Redact.Text(m.Instance)
		}
		if g.Guard != nil {
			guard := *g.Guard
			guard.Class = d.cfg.Redact.Text(guard.Class)
			g.Guard = &guard
		}
	}
	return all, nil
}

func redactAll(d *Desk, texts []string) []string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = d.cfg.Redact.Text(s)
	}
	return all
}

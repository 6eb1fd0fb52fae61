package redrive

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
)

// maxNamed is how many letters a warning names.
const maxNamed = 10

// unread are the letters of a plan whose last ledger entry cannot be read.
type unread struct {
	letters int64
	named   []string
}

func (u unread) warning(ledger string) string {
	names := strings.Join(u.named, ", ")
	if more := u.letters - int64(len(u.named)); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the entries of %d of the letters in %s can't be read, so these letters may be redriven a second time: %s; find out their outcomes first, or exclude them",
		u.letters, ledger, names)
}

// unreadOf finds the letters whose last entry cannot be read. They count as open, although they may
// have been redriven.
func (p *Plan) unreadOf(ledger *dlq.Ledger) (u unread) {
	if n, _ := ledger.Broken(); n == 0 {
		return u
	}
	for at := range p.chosen.All() {
		if !ledger.Unreadable(at.Partition, at.Offset) {
			continue
		}
		if u.letters++; len(u.named) < maxNamed {
			u.named = append(u.named, at.In(p.topics.dlq).String())
		}
	}
	return u
}

// watches sets Watched: by group, the shortest delay first.
func (p *Plan) watches(topics []string) {
	p.Watched = nil
	for _, group := range slices.Sorted(maps.Keys(p.ByGroup)) {
		for _, tier := range p.topics.naming.TiersAmong(topics, p.topics.source, group) {
			if !slices.Contains(p.Watched, tier.Topic) {
				p.Watched = append(p.Watched, tier.Topic)
			}
		}
	}
}

package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// runsModel is the model of the template "runs".
type runsModel struct {
	Says []phrase
	Rows []runsRow
	// More tells that there are older ones that have ended.
	More bool
}

// runsRow is a run in the list.
type runsRow struct {
	api.Run
	Link, TopicLink string
	Began           moment
	Red             bool
}

// mostRuns is how many runs the page has at most: the newest, and all that have not ended.
const mostRuns = 200

// runs is the page of all runs.
func (c *Console) runs(r *request) (*page, error) {
	who, base := r.who, r.base
	topics := slices.Sorted(maps.Keys(c.data.Roles(who)))
	version := func() (n uint64) {
		for _, name := range topics {
			n = n*31 + c.data.RunVersion(name)
		}
		return n
	}
	return &page{
		Title: "Runs", Section: "runs", Heading: "Runs",
		live: viewOf("runs", keyOf(append([]string{base, who.Rights()}, topics...)...), version, func(ctx context.Context, now time.Time) (any, error) {
			all, err := c.data.Runs(ctx, who)
			if err != nil {
				return nil, err
			}
			m := runsModel{Says: runsSay(all)}
			for i := range all {
				run, topic := &all[i], topicPath(base, all[i].Topic)
				if len(m.Rows) >= mostRuns && isOver(run) {
					m.More = true
					continue
				}
				m.Rows = append(m.Rows, runsRow{*run, runPath(topic, run.ID), topic, momentOf(run.Started, now), run.State == string(redrive.Aborted) || run.Silent})
			}
			return m, nil
		}),
	}, nil
}

// runsSay says how all runs are.
func runsSay(all []api.Run) (says []phrase) {
	var going, silent, aborted int64
	for i := range all {
		switch r := &all[i]; {
		case r.Silent:
			silent++
		case !isOver(r):
			going++
		case r.State == string(redrive.Aborted):
			aborted++
		}
	}
	if len(all) == 0 {
		return []phrase{{Text: "no runs yet"}}
	}
	if going > 0 {
		says = append(says, phrase{Text: number.Of(going, "run") + " under way"})
	} else {
		says = append(says, phrase{Text: "none under way"})
	}
	if silent > 0 {
		says = append(says, phrase{Text: fmt.Sprintf("%s without a process: resume or abort it", number.Of(silent, "run")), Red: true})
	}
	if aborted > 0 {
		says = append(says, phrase{Text: number.Format(aborted) + " aborted"})
	}
	return append(says, phrase{Text: number.Of(int64(len(all)), "run") + " in all"})
}

// sortTables orders tables by their names.
func sortTables(all []countTable) {
	slices.SortFunc(all, func(a, b countTable) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
}

package console

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// runsModel is the model of the template "runs".
type runsModel struct {
	Summary []phrase
	Rows    []runsRow
	// More reports that there are older ones that have ended.
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

// runsPage is the page of all runs.
func runsPage(d *operate.Desk, r *visit) (*page, error) {
	who, base, topics := r.who, r.base, topicsOf(d, r)
	version := func() (n uint64) {
		for _, name := range topics {
			n = n*31 + operate.RunVersion(d, name)
		}
		return n
	}
	return &page{
		Title: "Runs", Section: "runs", Heading: "Runs",
		live: viewOf("runs", view.KeyOf(append([]string{base, who.Rights()}, topics...)...), version, func(ctx context.Context, now time.Time) (any, error) {
			all, err := operate.ListAllRuns(ctx, d, who, &request.Newest{})
			if err != nil {
				return nil, err
			}
			return newRunsModel(all, base, now), nil
		}),
	}, nil
}

func newRunsModel(all []api.Run, base string, now time.Time) runsModel {
	m := runsModel{Summary: runsPhrases(all)}
	for i := range all {
		run, topic := &all[i], topicPath(base, all[i].Topic)
		if len(m.Rows) >= mostRuns && isOver(run) {
			m.More = true
			continue
		}
		m.Rows = append(m.Rows, runsRow{*run, runPath(topic, run.ID), topic, momentOf(run.Started, now), run.State == string(redrive.Aborted) || run.Silent})
	}
	return m
}

// runsPhrases returns in words how all runs are.
func runsPhrases(all []api.Run) (says []phrase) {
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

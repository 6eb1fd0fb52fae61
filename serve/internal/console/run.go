package console

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// runModel is the model of the template "run".
type runModel struct {
	Card         *cardModel
	Began, Ended moment
	Beat         moment
	Pace         []gauge
	Tables       []countTable
	// NotSent says what became of the letters that a run that is over did not send; empty if it
	// sent all. Left tells whether some were open at its end.
	NotSent string
	Left    bool
}

// run is the page of one run.
func (c *Console) run(r *request) (*page, error) {
	who, base, name, id := r.who, r.base, r.PathValue("topic"), r.PathValue("run")
	role, err := c.roleOn(r, name)
	if err != nil {
		return nil, err
	}
	if _, err := c.data.Run(r.Context(), who, name, id); err != nil {
		return nil, err
	}
	topic := topicPath(base, name)
	return &page{
		Title: "Run " + id + " · " + name, Section: "runs", Heading: "Run " + id, Above: []link{{"Topics", base + "/"}, {name, topic}}, Role: role.String(), run: runKey(name, id),
		live: viewOf("run", keyOf(base, name, role.String(), id), func() uint64 { return c.data.RunVersion(name) }, func(ctx context.Context, now time.Time) (any, error) {
			run, err := c.data.Run(ctx, who, name, id)
			if err != nil {
				return nil, err
			}
			m := &runModel{Card: c.card(run, base, role, now), Began: momentOf(run.Started, now), Ended: momentAt(run.Ended, now), Beat: momentOf(run.Heartbeat, now), Pace: paceSays(&run.Pace)}
			for name, of := range map[string]map[string]int64{"class with which they failed again": run.Counts.FailedByClass, "reason for which they were not sent": run.Counts.Skipped} {
				if len(of) > 0 {
					m.Tables = append(m.Tables, countTable{name, rowsOf(of)})
				}
			}
			sortTables(m.Tables)
			if m.Card.Over {
				m.NotSent, m.Left = notSent(&run.Counts)
			}
			return m, nil
		}).reading(),
	}, nil
}

// paceSays says what a run keeps to.
func paceSays(p *api.Pace) []gauge {
	ms := func(n int64) string {
		if n <= 0 {
			return none
		}
		return span(time.Duration(n) * time.Millisecond)
	}
	rate, canary := "no limit", none
	if p.Rate > 0 {
		rate = decimal(p.Rate) + "/s"
	}
	if p.Canary > 0 {
		canary = number.Of(int64(p.Canary), "letter")
	}
	return []gauge{{"rate", rate}, {"canary", canary}, {"ramp", ms(p.RampMs)}, {"window", ms(p.WindowMs)}, {"failures tolerated", number.Format(int64(p.Tolerate))}}
}

// abort ends a run. It asks nothing, and the page of the run says what it did.
func (c *Console) abort(r *request) (*answer, error) {
	_, err := c.actions.Abort(r.Context(), r.who, r.PathValue("topic"), r.PathValue("run"))
	return c.changed(r, err, func(run *api.Run) bool { return isOver(run) })
}

// resume continues a run that no process owns.
func (c *Console) resume(r *request) (*answer, error) {
	_, err := c.actions.Resume(r.Context(), r.who, r.PathValue("topic"), r.PathValue("run"))
	return c.changed(r, err, func(run *api.Run) bool { return run.Here })
}

// changed goes on to the page of a run. An error is none if the run is as it was to be: perhaps a
// first click, or somebody else, was faster.
func (c *Console) changed(r *request, err error, is func(*api.Run) bool) (*answer, error) {
	name, id := r.PathValue("topic"), r.PathValue("run")
	if err != nil {
		if run, known := c.data.Run(r.Context(), r.who, name, id); known != nil || redrive.State(run.State) == "" || !is(run) {
			return nil, err
		}
	}
	return &answer{to: runPath(topicPath(r.base, name), id)}, nil
}

package console

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// runModel is the model of the template "run".
type runModel struct {
	Card         *cardModel
	Began, Ended moment
	Beat         moment
	Pace         []gauge
	Tables       []countTable
	// NotSent says what became of the letters that a run that is over did not send; empty if it
	// sent all. Left reports whether some were open at its end.
	NotSent string
	Left    bool
}

// runPage is the page of one run.
func runPage(d *operate.Desk, rates *meter, r *visit) (*page, error) {
	base, name, id := r.base, r.PathValue("topic"), r.PathValue("run")
	role, err := roleOn(d, r, name)
	if err != nil {
		return nil, err
	}
	if _, err := operate.GetRun(r.Context(), d, r.who, runIn(r)); err != nil {
		return nil, err
	}
	topic := topicPath(base, name)
	return &page{
		Title: "Run " + id + " · " + name, Section: "runs", Heading: "Run " + id, Above: []link{{"Topics", base + "/"}, {name, topic}}, Role: role.String(), run: runKey(name, id),
		live: viewOf("run", view.KeyOf(base, name, role.String(), id), func() uint64 { return operate.RunVersion(d, name) }, func(ctx context.Context, now time.Time) (any, error) {
			run, err := operate.GetRun(ctx, d, r.who, runIn(r))
			if err != nil {
				return nil, err
			}
			return newRunModel(&run, base, role, rates, now), nil
		}).Reading(),
	}, nil
}

// runIn returns the run that an address names.
func runIn(r *visit) *request.Run {
	return &request.Run{Topic: request.Topic{Topic: r.PathValue("topic")}, Run: r.PathValue("run")}
}

func newRunModel(run *api.Run, base string, role access.Role, rates *meter, now time.Time) *runModel {
	m := &runModel{
		Card: newCardModel(run, base, role, rates, now), Began: momentOf(run.Started, now), Ended: momentAt(run.Ended, now), Beat: momentOf(run.Heartbeat, now), Pace: paceGauges(&run.Pace),
	}
	for name, of := range map[string]map[string]int64{"class with which they failed again": run.Counts.FailedByClass, "reason for which they were not sent": run.Counts.Skipped} {
		if len(of) > 0 {
			m.Tables = append(m.Tables, countTable{name, rowsOf(of)})
		}
	}
	sortTables(m.Tables)
	if m.Card.Over {
		m.NotSent, m.Left = notSent(&run.Counts)
	}
	return m
}

// paceGauges returns in words what a run keeps to.
func paceGauges(p *api.Pace) []gauge {
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

// abortRun ends a run. It asks nothing, and the page of the run says what it did.
func abortRun(d *operate.Desk, r *visit) (*answer, error) {
	_, err := operate.AbortRun(r.Context(), d, r.who, &request.Abort{Run: *runIn(r)})
	return changed(d, r, err, func(run *api.Run) bool { return isOver(run) })
}

// resumeRun continues a run that no process owns.
func resumeRun(d *operate.Desk, r *visit) (*answer, error) {
	_, err := operate.ResumeRun(r.Context(), d, r.who, &request.Resume{Run: *runIn(r)})
	return changed(d, r, err, func(run *api.Run) bool { return run.Here })
}

// changed goes on to the page of a run. An error is none if the run is as it was to be: perhaps a
// first click, or another operator, was faster.
func changed(d *operate.Desk, r *visit, err error, is func(*api.Run) bool) (*answer, error) {
	if err != nil {
		if run, known := operate.GetRun(r.Context(), d, r.who, runIn(r)); known != nil || redrive.State(run.State) == "" || !is(&run) {
			return nil, err
		}
	}
	return &answer{to: runPath(topicPath(r.base, r.PathValue("topic")), r.PathValue("run"))}, nil
}

package console

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// cardModel is a run as the template "card" shows it: on its own page, and on all pages while it
// goes on.
type cardModel struct {
	api.Run
	// HTML is a part of the elements' ids.
	HTML            string
	Link, TopicLink string
	Summary         []phrase
	Phases          []phaseModel
	Bar             []barPart
	Gauges          []gauge
	WindowEnds      moment
	Over            bool
	// MayAbort and MayResume report which buttons there are.
	MayAbort, MayResume bool
	// Cannot is why there is none.
	Cannot string
}

// phaseModel is a phase of a run.
type phaseModel struct {
	Name    string
	Current bool
}

// barPart is a part of a run's letters, in percent of them.
type barPart struct {
	Name, Class string
	Letters     int64
	X, Width    string
}

// gauge is a number of a run.
type gauge struct{ Name, Value string }

// cardsModel is the model of the template "cards".
type cardsModel struct {
	Silent moment // since when the brokers have not answered
	Cards  []*cardModel
	More   int
	Link   string
}

const (
	// mostCards bounds the cards of a page.
	mostCards = 3
	// endedFor is how long a run that has ended keeps its card.
	endedFor = 2 * time.Minute
)

// cardsView is the view of the runs that go on, but for the one that the page itself shows.
func cardsView(d *operate.Desk, m *meter, r *visit, but string) view.View {
	who, base := r.who, r.base
	roles := operate.Roles(d, who)
	parts := []string{base, but, who.Rights()} // topics may come that not all of them see
	topics := slices.Sorted(maps.Keys(roles))
	for _, name := range topics {
		parts = append(parts, name, roles[name].String())
	}
	version := func() uint64 {
		n := uint64(max(operate.SilentSince(d).Unix(), 0))
		for _, name := range topics {
			n = n*31 + operate.RunVersion(d, name)
		}
		return n
	}
	return viewOf("cards", view.KeyOf(parts...), version, func(ctx context.Context, now time.Time) (any, error) {
		all, err := operate.ListAllRuns(ctx, d, who, &request.Newest{})
		if err != nil {
			return nil, err
		}
		return newCardsModel(all, but, base, roles, operate.SilentSince(d), m, now), nil
	})
}

// newCardsModel returns the cards of runs, but for one. roles are those of who looks at them, by
// topic, and silent is since when the brokers have not answered.
func newCardsModel(all []api.Run, but, base string, roles map[string]access.Role, silent time.Time, rates *meter, now time.Time) cardsModel {
	m := cardsModel{Link: base + "/runs", Silent: momentOf(silent, now)}
	for i := range all {
		r := &all[i]
		if runKey(r.Topic, r.ID) == but || r.Ended != nil && now.Sub(*r.Ended) > endedFor || r.Ended == nil && isOver(r) {
			continue
		}
		if len(m.Cards) == mostCards {
			m.More++
			continue
		}
		m.Cards = append(m.Cards, newCardModel(r, base, roles[r.Topic], rates, now))
	}
	return m
}

func newCardModel(r *api.Run, base string, role access.Role, rates *meter, now time.Time) *cardModel {
	topic := topicPath(base, r.Topic)
	m := &cardModel{Run: *r, HTML: idOf(r.Topic, r.ID), Link: runPath(topic, r.ID), TopicLink: topic, Summary: runPhrases(r, now), Bar: barOf(&r.Counts), Over: isOver(r)}
	if !m.Over {
		m.Phases, m.Gauges = phasesOf(r), gaugesOf(r, rates, now)
		m.MayAbort, m.MayResume = role >= access.Operator, role >= access.Operator && r.Silent
		if !m.MayAbort {
			m.Cannot = "To abort it takes the role " + access.Operator.String() + " on " + r.Topic + "."
		}
		if r.State == string(redrive.Watching) {
			m.WindowEnds = momentAt(r.WindowEnds, now)
		}
	}
	return m
}

// phasesOf returns the phases of a run that goes on. A run that waits is in the phase in which it
// began to wait.
func phasesOf(r *api.Run) []phaseModel {
	at := "full"
	switch {
	case r.State == string(redrive.Watching):
		at = "watching"
	case r.State == string(redrive.Canary), r.State == string(redrive.Waiting) && r.Counts.Sent <= int64(max(r.Pace.Canary, 0)):
		at = "canary"
	case r.Rate >= 0 && r.Rate < r.Pace.Rate:
		at = "ramp"
	}
	all := make([]phaseModel, 0, 4)
	for _, name := range []string{"canary", "ramp", "full", "watching"} {
		all = append(all, phaseModel{name, name == at})
	}
	return all
}

// gaugesOf returns the numbers of a run that goes on. What is not known is shown as unknown.
func gaugesOf(r *api.Run, rates *meter, at time.Time) []gauge {
	now, allowed := "unknown yet", "no limit"
	rate, known := rates.observe(r)
	if known {
		now = decimal(rate) + "/s"
	} else {
		rate = r.Rate
	}
	if r.Rate >= 0 {
		allowed = decimal(r.Rate) + "/s"
	}
	lag := number.Format(r.Counts.Pending)
	if r.Pace.MaxLag > 0 {
		lag += " of at most " + number.Format(r.Pace.MaxLag)
	}
	return []gauge{{"done", doneText(r, rate, at)}, {"rate now", now}, {"rate allowed", allowed}, {"lag", lag}}
}

// barOf returns the letters of a run by their outcomes.
func barOf(n *api.Counts) (all []barPart) {
	if n.Selected <= 0 {
		return nil
	}
	rest := max(n.Selected-n.Sent, 0)
	other := max(n.Sent-n.Succeeded-n.Failed-n.Pending, 0)
	x := 0.0
	for _, part := range []barPart{
		{Name: "succeeded", Class: "good", Letters: n.Succeeded},
		{Name: "failed again", Class: "bad", Letters: n.Failed},
		{Name: "pending", Class: "pending", Letters: n.Pending},
		{Name: "with another outcome", Class: "other", Letters: other},
		{Name: "not sent", Class: "rest", Letters: rest},
	} {
		if part.Letters == 0 && part.Class == "other" {
			continue
		}
		width := min(100*float64(part.Letters)/float64(n.Selected), 100-x)
		part.X, part.Width = strconv.FormatFloat(x, 'f', 2, 64), strconv.FormatFloat(width, 'f', 2, 64)
		x += width
		all = append(all, part)
	}
	return all
}

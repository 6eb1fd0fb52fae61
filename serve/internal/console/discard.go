package console

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// resolveModel is the model of the template "resolve": letters that are discarded, or reopened.
type resolveModel struct {
	Which, Back, Here string
	Problem           string
	Says              string
	// Letters is how many letters there are; 1 for one.
	Letters int64
	// Typed tells that the number is to be typed, and Compensated that there is such a choice.
	Typed, Compensates bool
	Fields             []field
	Key, Why, Button   string
}

// discard discards letters: all open ones that a filter selects, if somebody types their number, or
// one.
func (c *Console) discard(r *request) (*answer, error) {
	a, err := c.aimAt(r, "/discard")
	if err != nil {
		return nil, err
	}
	if a.role < access.Operator && !r.does() {
		return nil, &pageError{http.StatusForbidden, takesRole(access.Operator, a.topic)}
	}
	o := api.DiscardRequest{Why: strings.TrimSpace(r.query.Get("why")), Compensated: r.query.Get("compensated") != ""}
	var problem error
	if r.does() {
		problem = c.once(r, func() error { return c.discarded(r, a, &o) })
		if problem == nil {
			return &answer{to: a.afterwards(r)}, nil
		}
	}
	m := &resolveModel{
		Which: a.which(), Letters: 1, Typed: !a.single, Compensates: true, Why: o.Why, Button: "Discard",
		Says: "Discards the letter: nobody brings it back, unless somebody reopens it.",
	}
	if !a.single {
		if m.Letters, err = c.data.Count(r.Context(), r.who, a.topic, &a.filter); err != nil {
			return nil, err
		}
		m.Says = "Discards " + number.Of(m.Letters, "letter") + ": nobody brings them back, unless somebody reopens them one by one."
		if m.Letters == 0 {
			m.Says = "Discards nothing: no open letter is selected."
		}
	}
	return m.answer(c, r, a, "Discard", "Discard letters", problem), nil
}

func (c *Console) discarded(r *request, a *aim, o *api.DiscardRequest) error {
	if o.Why == "" {
		return badInput("Discarding takes a reason, for the ledger: nothing was done.")
	}
	if a.single {
		return c.actions.DiscardLetter(r.Context(), r.who, a.topic, a.partition, a.offset, o)
	}
	n, err := expected(r.query.Get("expect"))
	if err != nil {
		return err
	}
	return c.actions.Discard(r.Context(), r.who, a.topic, &api.BulkDiscardRequest{Filter: a.filter, Expect: n, DiscardRequest: *o})
}

// reopen withdraws that a letter was discarded, or that it was brought back to where no consumer
// can have it.
func (c *Console) reopen(r *request) (*answer, error) {
	a, err := c.aimAt(r, "/reopen")
	if err != nil {
		return nil, err
	}
	if a.role < access.Operator && !r.does() {
		return nil, &pageError{http.StatusForbidden, takesRole(access.Operator, a.topic)}
	}
	why := strings.TrimSpace(r.query.Get("why"))
	var problem error
	if r.does() {
		problem = c.once(r, func() error {
			if why == "" {
				return badInput("Reopening takes a reason, for the ledger: nothing was done.")
			}
			return c.actions.Reopen(r.Context(), r.who, a.topic, a.partition, a.offset, &api.ReopenRequest{Why: why})
		})
		if problem == nil {
			return &answer{to: a.afterwards(r)}, nil
		}
	}
	m := &resolveModel{Which: a.which(), Letters: 1, Why: why, Button: "Reopen", Says: "Withdraws that the letter was discarded: it is open again, and can be brought back. " +
		"A letter that was brought back before is open again only if its copy is in a partition that no consumer can have."}
	return m.answer(c, r, a, "Reopen", "Reopen a letter", problem), nil
}

// afterwards is where what was done can be seen: the letter's story, or the topic's audit.
func (a *aim) afterwards(r *request) string {
	if a.single {
		return a.path
	}
	return r.base + "/audit?" + url.Values{"topic": {a.topic}}.Encode()
}

func (m *resolveModel) answer(c *Console, r *request, a *aim, act, heading string, problem error) *answer {
	m.Back, m.Here, m.Fields, m.Problem, m.Key = a.path, a.here, a.fields, c.problemOf(r, problem), rand.Text()
	return &answer{page: a.page(act, heading), template: "resolve", model: m, problem: problem}
}

// canReopen reports whether a letter can be reopened: if it was brought back, as far as the state
// tells.
func canReopen(state string) bool {
	return dlq.State(state).Discards() || dlq.State(state) == dlq.Redriven
}

package console

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// resolveModel is the model of the template "resolve": letters that are discarded, or reopened.
type resolveModel struct {
	Which, Back, Here string
	Problem           string
	Effect            string
	// Letters is how many letters there are; 1 for one.
	Letters int64
	// Typed reports that the number is to be typed, and Compensated that there is such a choice.
	Typed, Compensates bool
	Fields             []field
	Key, Why, Button   string
}

// discardForm discards letters: all open ones that a filter selects, if the operator types their
// number, or one.
func discardForm(s *site, r *visit) (*answer, error) {
	a, err := subjectOf(s.cfg.Desk, r, "/discard")
	if err != nil {
		return nil, err
	}
	if a.role < access.Operator && !r.does() {
		return nil, &pageError{http.StatusForbidden, takesRole(access.Operator, a.topic)}
	}
	o := api.DiscardRequest{Why: strings.TrimSpace(r.query.Get("why")), Compensated: r.query.Get("compensated") != ""}
	var problem error
	if r.does() {
		problem = s.once(r, func() error { return discard(s.cfg.Desk, r, a, &o) })
		if problem == nil {
			return &answer{to: a.afterwards(r)}, nil
		}
	}
	letters := int64(1)
	if !a.single {
		if letters, err = operate.CountOpen(r.Context(), s.cfg.Desk, r.who, a.topic, &a.filter); err != nil {
			return nil, err
		}
	}
	return newDiscardModel(a, letters, o.Why).answer(s, r, a, "Discard", "Discard letters", problem), nil
}

func newDiscardModel(a *subject, letters int64, why string) *resolveModel {
	m := &resolveModel{
		Which: a.which(), Letters: letters, Typed: !a.single, Compensates: true, Why: why, Button: "Discard",
		Effect: "Discards the letter: nobody brings it back, unless somebody reopens it.",
	}
	switch {
	case a.single:
	case letters == 0:
		m.Effect = "Discards nothing: no open letter is selected."
	default:
		m.Effect = "Discards " + number.Of(letters, "letter") + ": nobody brings them back, unless somebody reopens them one by one."
	}
	return m
}

// discard does what a form says.
func discard(d *operate.Desk, r *visit, a *subject, o *api.DiscardRequest) error {
	if o.Why == "" {
		return badInput("Discarding takes a reason, for the ledger: nothing was done.")
	}
	if a.single {
		_, err := operate.DiscardLetter(r.Context(), d, r.who, &request.Discard{Letter: a.letter(), Body: *o})
		return err
	}
	n, err := expected(r.query.Get("expect"))
	if err != nil {
		return err
	}
	_, err = operate.DiscardLetters(r.Context(), d, r.who, &request.BulkDiscard{
		Topic: request.Topic{Topic: a.topic}, Body: api.BulkDiscardRequest{Filter: a.filter, Expect: n, DiscardRequest: *o},
	})
	return err
}

// reopenForm withdraws that a letter was discarded, or that it was brought back to where no
// consumer can have it.
func reopenForm(s *site, r *visit) (*answer, error) {
	a, err := subjectOf(s.cfg.Desk, r, "/reopen")
	if err != nil {
		return nil, err
	}
	if a.role < access.Operator && !r.does() {
		return nil, &pageError{http.StatusForbidden, takesRole(access.Operator, a.topic)}
	}
	why := strings.TrimSpace(r.query.Get("why"))
	var problem error
	if r.does() {
		problem = s.once(r, func() error {
			if why == "" {
				return badInput("Reopening takes a reason, for the ledger: nothing was done.")
			}
			_, err := operate.ReopenLetter(r.Context(), s.cfg.Desk, r.who, &request.Reopen{Letter: a.letter(), Body: api.ReopenRequest{Why: why}})
			return err
		})
		if problem == nil {
			return &answer{to: a.afterwards(r)}, nil
		}
	}
	return newReopenModel(a, why).answer(s, r, a, "Reopen", "Reopen a letter", problem), nil
}

func newReopenModel(a *subject, why string) *resolveModel {
	return &resolveModel{Which: a.which(), Letters: 1, Why: why, Button: "Reopen", Effect: "Withdraws that the letter was discarded: it is open again, and can be brought back. " +
		"A letter that was brought back before is open again only if its copy is in a partition that no consumer can have."}
}

func (m *resolveModel) answer(s *site, r *visit, a *subject, act, heading string, problem error) *answer {
	m.Back, m.Here, m.Fields, m.Problem, m.Key = a.path, a.here, a.fields, s.problemOf(r, problem), rand.Text()
	return &answer{page: a.page(act, heading), template: "resolve", model: m, problem: problem}
}

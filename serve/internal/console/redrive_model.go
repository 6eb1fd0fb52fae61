package console

import (
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// redriveModel is the model of the template "redrive".
type redriveModel struct {
	Which, Back, Here string
	// Method is the way in which the form with the options is sent.
	Method  string
	Problem string
	// Edit changes what the letters carry; nil if a filter's letters stay as they are. Changes are
	// what it does to the first of them.
	Edit    *editModel
	Changes []*changes
	// Plan is nil if there is a problem.
	Plan    *planModel
	Fields  []field // of the letters, and of the run
	Target  []field // of the letters alone
	Options []option
	Key     string
	Why     string
	// Commands begin the run of the plan.
	Commands []command
}

func newRedriveModel(a *subject, chosen []field, options []option) *redriveModel {
	m := &redriveModel{Which: a.which(), Back: a.path, Here: a.here, Method: "get", Target: a.fields, Options: options, Fields: append(a.fields, chosen...)}
	if a.single {
		m.Method = "post"
	}
	return m
}

// command adds the commands that begin the run of a plan.
func (m *redriveModel) command(topic string, p *planModel, in *api.RunRequest) {
	if p == nil || p.Letters == 0 {
		return
	}
	run := *in
	run.Why, run.Expect = m.Why, &p.Letters
	m.Commands = planCommands(topic, &run)
}

func (m *redriveModel) answer(a *subject, problem error) *answer {
	return &answer{page: a.page("Redrive", "Bring letters back"), template: "redrive", model: m, problem: problem}
}

// edit adds the form of an edit. What it has is no part of an address.
func (m *redriveModel) edit(form *editModel) { m.Edit, m.Method = form, "post" }

// preview adds what an edit does to a letter.
func (m *redriveModel) preview(d *operate.Desk, r *visit, at *request.Letter, e *api.Edit, name string) error {
	before, after, err := operate.EditedLetter(r.Context(), d, r.who, at, e)
	if err != nil {
		return err
	}
	c := changesOf(before, after)
	c.Letter = name
	m.Changes = append(m.Changes, c)
	return nil
}

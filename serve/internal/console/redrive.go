package console

import (
	"crypto/rand"

	"github.com/sidingkafka/siding/serve/api"
)

// redriveModel is the model of the template "redrive".
type redriveModel struct {
	Which, Back, Here string
	// Method is the way in which the form with the options is sent.
	Method  string
	Problem string
	// Edit changes the one letter; nil for a filter's letters. Changes are what it does.
	Edit    *editModel
	Changes *changes
	// Plan is nil if there is a problem.
	Plan    *planModel
	Fields  []field // of the letters, and of the run
	Target  []field // of the letters alone
	Options []option
	Key     string
	Why     string
}

// mostKey bounds an idempotency key, and mostWhy a reason, in bytes. They are the API's.
const (
	mostKey = 200
	mostWhy = 4096
)

// redrive plans a run of letters, and begins it when its plan is confirmed.
func (c *Console) redrive(r *request) (*answer, error) {
	a, err := c.aimAt(r, "/redrive")
	if err != nil {
		return nil, err
	}
	options, chosen, all, err := optionsOf(r.query)
	m := &redriveModel{
		Which: a.which(), Back: a.path, Here: a.here, Method: "get", Target: a.fields, Options: all, Fields: append(a.fields, chosen...),
		Key: r.query.Get("key"), Why: r.query.Get("why"),
	}
	in := &api.RunRequest{Filter: a.filter, RunOptions: options}
	if a.single {
		m.Method = "post"
		if problem := c.edited(r, a, in, m); err == nil {
			err = problem
		}
	}
	if err != nil { // a plan of something else would mislead
		m.Problem = c.problemOf(r, err)
		return m.answer(a, err), nil
	}
	if r.does() {
		run, problem := c.begin(r, a, in)
		if problem == nil {
			return &answer{to: runPath(topicPath(r.base, a.topic), run.ID)}, nil
		}
		err = problem
		if status, _ := c.explain(r, err); status < 500 {
			m.Key = "" // nothing began with it
		}
	}
	if m.Key == "" || len(m.Key) > mostKey {
		m.Key = rand.Text()
	}
	m.Problem = c.problemOf(r, err)
	if r.Context().Err() != nil {
		return m.answer(a, err), nil // there is no time left for another plan
	}
	if plan := c.planned(r, a, in, m); plan != nil && err == nil {
		err = plan
	}
	return m.answer(a, err), nil
}

func (m *redriveModel) answer(a *aim, problem error) *answer {
	return &answer{page: a.page("Redrive", "Bring letters back"), template: "redrive", model: m, problem: problem}
}

// edited reads the edit of a letter, and adds to a page what it does.
func (c *Console) edited(r *request, a *aim, in *api.RunRequest, m *redriveModel) error {
	l, err := c.data.Letter(r.Context(), r.who, a.topic, a.partition, a.offset)
	if err != nil {
		return err
	}
	e, form, fields, err := editOf(r.query, l)
	m.Edit = form
	if err != nil {
		return err
	}
	in.Edit = e
	m.Fields = append(m.Fields, fields...)
	if len(fields) == 0 {
		return nil
	}
	before, after, err := c.actions.Edited(r.Context(), r.who, a.topic, a.partition, a.offset, &e)
	if err == nil {
		m.Changes = changesOf(before, after)
	}
	return err
}

// planned adds the plan to a page, or why there is none. It is made anew although a run was
// refused: the page then has what is so now.
func (c *Console) planned(r *request, a *aim, in *api.RunRequest, m *redriveModel) error {
	in.Expect = nil
	t, err := c.data.Topic(r.Context(), r.who, a.topic)
	if err == nil {
		var p *api.Plan
		if p, err = c.actions.Plan(r.Context(), r.who, a.topic, in); err == nil {
			m.Plan = newPlanModel(p, t, &in.Pace)
			if t.Run != "" {
				m.Plan.Warnings = append(m.Plan.Warnings, "run "+t.Run+" is not finished, and a topic has one at a time")
			}
			return nil
		}
	}
	if m.Problem == "" {
		m.Problem = c.problemOf(r, err)
	}
	return err
}

// begin begins a run, if what the form says can be understood.
func (c *Console) begin(r *request, a *aim, in *api.RunRequest) (*api.Run, error) {
	n, err := expected(r.query.Get("expect"))
	if err != nil {
		return nil, err
	}
	key, why := r.query.Get("key"), r.query.Get("why")
	if key == "" || len(key) > mostKey {
		return nil, badInput("The form is not one of this page: nothing was done. Look at the plan again.")
	}
	if len(why) > mostWhy {
		return nil, badInput("The reason has %d bytes, and %d are allowed: nothing was done.", len(why), mostWhy)
	}
	in.Expect, in.Why = &n, why
	return c.actions.Start(r.Context(), r.who, a.topic, key, in)
}

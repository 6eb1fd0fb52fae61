package console

import (
	"crypto/rand"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// redriveForm plans a run of letters, and begins it when its plan is confirmed.
func redriveForm(s *site, r *visit) (*answer, error) {
	d := s.cfg.Desk
	a, err := subjectOf(d, r, "/redrive")
	if err != nil {
		return nil, err
	}
	options, chosen, all, err := optionsOf(r.query)
	m := newRedriveModel(a, chosen, all)
	m.Key, m.Why = r.query.Get("key"), r.query.Get("why")
	in := &api.RunRequest{Filter: a.filter, RunOptions: options}
	if problem := edit(d, r, a, in, m); err == nil {
		err = problem
	}
	if err != nil { // a plan of something else would mislead
		m.Problem = s.problemOf(r, err)
		return m.answer(a, err), nil
	}
	if r.does() {
		run, problem := begin(d, r, a, in)
		if problem == nil {
			return &answer{to: runPath(topicPath(r.base, a.topic), run.ID)}, nil
		}
		err = problem
		if status, _ := s.explain(r, err); status < 500 {
			m.Key = "" // nothing began with it
		}
	}
	if m.Key == "" || len(m.Key) > mostKey {
		m.Key = rand.Text()
	}
	m.Problem = s.problemOf(r, err)
	p, unplanned := plan(d, r, a, in)
	m.command(a.topic, p, in)
	if m.Plan = p; unplanned != nil && err == nil {
		err, m.Problem = unplanned, s.problemOf(r, unplanned)
	}
	return m.answer(a, err), nil
}

// plan returns what a run would do; nil if beginning one took all the time of the request. It is
// made anew although a run was refused: the page then has what is so now.
func plan(d *operate.Desk, r *visit, a *subject, in *api.RunRequest) (*planModel, error) {
	if r.Context().Err() != nil {
		return nil, nil
	}
	in.Expect = nil
	t, err := operate.ViewTopic(r.Context(), d, r.who, a.topic)
	if err != nil {
		return nil, err
	}
	p, err := operate.PlanRun(r.Context(), d, r.who, &request.Plan{Topic: request.Topic{Topic: a.topic}, Body: *in})
	if err != nil {
		return nil, err
	}
	return newPlanModel(&p, &t, &in.Pace), nil
}

// begin begins a run, if what the form says can be understood.
func begin(d *operate.Desk, r *visit, a *subject, in *api.RunRequest) (api.Run, error) {
	n, err := expected(r.query.Get("expect"))
	if err != nil {
		return api.Run{}, err
	}
	key, why := r.query.Get("key"), r.query.Get("why")
	if key == "" || len(key) > mostKey {
		return api.Run{}, badInput("The form is not one of this page: nothing was done. Look at the plan again.")
	}
	if len(why) > mostWhy {
		return api.Run{}, badInput("The reason has %d bytes, and %d are allowed: nothing was done.", len(why), mostWhy)
	}
	in.Expect, in.Why = &n, why
	return operate.StartRun(r.Context(), d, r.who, &request.Start{Topic: request.Topic{Topic: a.topic}, Key: request.Key{IdempotencyKey: key}, Body: *in})
}

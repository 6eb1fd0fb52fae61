package console

import (
	"net/url"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// mostPreviews is of how many letters a page shows what one edit does to them.
const mostPreviews = 3

// edit reads the edit of letters, and adds to a page what it does to the first of them.
func edit(d *operate.Desk, r *visit, a *subject, in *api.RunRequest, m *redriveModel) error {
	if !a.single {
		return editMany(d, r, a, in, m)
	}
	at := a.letter()
	l, err := operate.GetLetter(r.Context(), d, r.who, &at)
	if err != nil {
		return err
	}
	e, form, fields, err := editOf(r.query, &l)
	m.edit(form)
	if err != nil {
		return err
	}
	in.Edit = e
	m.Fields = append(m.Fields, fields...)
	if len(fields) == 0 {
		return nil
	}
	return m.preview(d, r, &at, &e, "")
}

// edits reports whether a form has an edit of many letters.
func edits(q url.Values) bool {
	return q.Get("set") != "" || q.Get("unset") != "" || q.Get("patch") != ""
}

// editMany reads one edit for all letters of a filter.
func editMany(d *operate.Desk, r *visit, a *subject, in *api.RunRequest, m *redriveModel) error {
	if !edits(r.query) {
		return nil
	}
	q := url.Values{"set": r.query["set"], "unset": r.query["unset"], "patch": r.query["patch"]}
	e, form, fields, err := editOf(q, &api.LetterDetail{})
	form.NoText = "each letter has its own"
	m.edit(form)
	if err != nil {
		return err
	}
	in.Edit = e
	m.Fields = append(m.Fields, fields...)
	of := request.Topic{Topic: a.topic}
	page, err := operate.ListLetters(r.Context(), d, r.who, &request.Letters{Topic: of, Filter: a.filter, Limit: mostPreviews})
	if err != nil {
		return err
	}
	for _, l := range page.Letters {
		at := request.Letter{Topic: of, Partition: l.Partition, Offset: l.Offset}
		if err := m.preview(d, r, &at, &e, letterName(l.Partition, l.Offset)); err != nil {
			return err
		}
	}
	return nil
}

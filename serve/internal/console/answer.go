package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// mostForm bounds the body of a form, in bytes, and mostEdit that of one with a value.
const (
	mostForm = 16 << 10
	mostEdit = 4 << 20
)

// answer is what a form is answered with: another page to go on to, or a page that stays as it is.
type answer struct {
	to string // below the server; empty for a page

	page     page
	template string
	model    any
	// problem is why what was asked for was not done; nil if nothing was, or all went well.
	problem error
}

// answers serves a form: GET shows it, and POST does what it says. What somebody asked for is done
// although their browser is gone, so that a second click finds the first one's work.
func (c *Console) answers(of func(*request) (*answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, end, ok := c.enter(w, r, access.Long)
		if !ok {
			return
		}
		defer end()
		r = req.Request
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, mostEdit)
			if err := r.ParseForm(); err != nil {
				c.failForm(w, req, err)
				return
			}
			req.query = r.PostForm
			last, _ := r.Context().Deadline()
			ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), last)
			defer cancel()
			req.Request = r.WithContext(ctx)
		}
		a, err := of(req)
		if r.Method == http.MethodPost {
			c.views.acts.Add(1)
		}
		if err != nil {
			c.fail(w, req, err)
			return
		}
		if a.to != "" {
			http.Redirect(w, r, a.to, http.StatusSeeOther)
			return
		}
		status := http.StatusOK
		if a.problem != nil {
			status, _ = c.explain(req, a.problem)
		}
		html, err := execute(a.template, a.model)
		if err != nil {
			c.fail(w, req, err)
			return
		}
		c.write(w, req, status, &a.page, rendering{html: html})
	})
}

// failForm answers with a page that says why a form could not be read. One that takes too long
// looks as if its browser were gone.
func (c *Console) failForm(w http.ResponseWriter, r *request, err error) {
	p := &pageError{http.StatusBadRequest, "The form is broken: nothing was done. Try again."}
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		p = &pageError{http.StatusRequestEntityTooLarge, "The form is too large: nothing was done."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = &pageError{http.StatusRequestTimeout, "The form took too long to arrive: nothing was done. Try again."}
	}
	c.say(w, r, p.status, http.StatusText(p.status), p.text)
}

// does reports whether a form asks to do something, and not only to show what that would be.
func (r *request) does() bool { return r.Method == http.MethodPost && r.query.Get("do") == "begin" }

// explain returns the status and the words for an error. What nobody planned for is logged.
func (c *Console) explain(r *request, err error) (status int, text string) {
	var known withStatus
	switch {
	case errors.As(err, &known):
		return known.GetStatus(), c.data.Hide(known.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "The brokers did not answer in time. Try again."
	}
	c.log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
	return http.StatusInternalServerError, "The server could not make this page. Its log has the reason."
}

// problemOf returns the words for an error; none for nil.
func (c *Console) problemOf(r *request, err error) string {
	if err == nil {
		return ""
	}
	_, text := c.explain(r, err)
	return text
}

// fieldsOf returns the values of an address as fields of a form.
func fieldsOf(q url.Values) (all []field) {
	for _, key := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[key] {
			all = append(all, field{key, v})
		}
	}
	return all
}

// runPath is the address of a run's page. path is that of its topic.
func runPath(path, id string) string { return path + "/runs/" + url.PathEscape(id) }

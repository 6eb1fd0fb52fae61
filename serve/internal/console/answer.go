package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
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
		req := &request{Request: r, query: r.URL.Query(), base: baseOf(r), now: time.Now()}
		who, err := c.browser.Who(r)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		req.who = who
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, mostEdit)
			if err := r.ParseForm(); err != nil {
				c.fail(w, req, badInput("The form is too long, or broken: nothing was done."))
				return
			}
			req.query = r.PostForm
			req.Request = r.WithContext(context.WithoutCancel(r.Context()))
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

// does reports whether a form asks to do something, and not only to show what that would be.
func (r *request) does() bool { return r.Method == http.MethodPost && r.query.Get("do") == "begin" }

// explain returns the status and the words for an error. What nobody planned for is logged.
func (c *Console) explain(r *request, err error) (status int, text string) {
	var known withStatus
	switch {
	case errors.As(err, &known):
		return known.GetStatus(), known.Error()
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

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// Client asks one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns a client of the server at an address, as in https://siding.example.com. token is a
// bearer token; empty for none. A nil http is [http.DefaultClient]. It does no I/O. Requests that
// only ask follow redirects as http does. Others follow none: a redirected one is an error.
func New(address, token string, h *http.Client) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("client: %q is not the address of a server: as in https://siding.example.com", address)
	}
	if h == nil {
		h = http.DefaultClient
	}
	own := *h
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case via[0].Method != http.MethodGet:
			// net/http would ask by GET, or carry the body to whatever host the answer names.
			return http.ErrUseLastResponse
		case h.CheckRedirect != nil:
			return h.CheckRedirect(r, via)
		case len(via) >= mostRedirects:
			return fmt.Errorf("stopped after %d redirects", mostRedirects)
		}
		return nil
	}
	return &Client{base: base, token: token, http: &own}, nil
}

// mostRedirects is the limit of net/http.
const mostRedirects = 10

// path joins parts of a path, each of which may have any character.
func path(parts ...any) string {
	var all []string
	for _, p := range parts {
		all = append(all, url.PathEscape(fmt.Sprint(p)))
	}
	return "/api/v1/" + strings.Join(all, "/")
}

// The content types of the API's answers.
const (
	jsonType   = "application/json"
	linesType  = "application/x-ndjson"
	eventsType = "text/event-stream"
)

// send sends a request, and returns the answer if it is a success of the content type accept. Of
// events there may be none, with status 204.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any, accept string, header http.Header) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	address := strings.TrimSuffix(c.base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for key, values := range header {
		r.Header[key] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	r.Header.Set("Accept", accept)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if err := check(answer, accept); err != nil {
		answer.Body.Close()
		return nil, fmt.Errorf("client: %s %s: %w", method, path, err)
	}
	return answer, nil
}

// check returns an error if an answer is none of the API, or no success.
func check(answer *http.Response, accept string) error {
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return problemOf(answer)
	}
	if answer.StatusCode == http.StatusNoContent && accept == eventsType {
		return nil
	}
	text := answer.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(text); err == nil && kind == accept {
		return nil
	}
	is := "no content type"
	if text != "" {
		is = fmt.Sprintf("the content type %q", text)
	}
	return fmt.Errorf("the answer has %s in place of %s: something other than the server of siding sent it", is, accept)
}

// mostProblem bounds the text of a problem.
const mostProblem = 1 << 20

// problemOf returns an answer that is no success as a problem, also if a proxy sent it.
func problemOf(answer *http.Response) *api.Problem {
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostProblem))
	var p api.Problem
	if err != nil || json.Unmarshal(text, &p) != nil || p.Type == "" {
		p = api.Problem{Type: "about:blank", Title: answer.Status, Detail: answer.Status}
		switch {
		case answer.StatusCode < http.StatusBadRequest:
			p.Detail = fmt.Sprintf("%s to %q: the request was not carried out; the client has to have the server's own address", answer.Status, answer.Header.Get("Location"))
		case len(bytes.TrimSpace(text)) > 0:
			p.Detail = fmt.Sprintf("%s: %s", answer.Status, bytes.TrimSpace(text))
		}
		if answer.StatusCode == http.StatusTooManyRequests {
			p.Type = api.TooManyRequests.Type()
		}
	}
	p.Status, p.RetryAfter = answer.StatusCode, retryAfter(answer.Header)
	return &p
}

// retryAfter returns the wait that headers ask for, as seconds or as a time; zero for none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(time.Until(at), 0)
}

// call sends a request and decodes the answer.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any, header http.Header) (got T, err error) {
	answer, err := c.send(ctx, method, path, query, body, jsonType, header)
	if err != nil {
		return got, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return got, fmt.Errorf("client: the answer to %s %s: %w", method, path, err)
	}
	return got, nil
}

func get[T any](ctx context.Context, c *Client, query url.Values, parts ...any) (T, error) {
	return call[T](ctx, c, http.MethodGet, path(parts...), query, nil, nil)
}

func post[T any](ctx context.Context, c *Client, body any, parts ...any) (T, error) {
	return call[T](ctx, c, http.MethodPost, path(parts...), nil, body, nil)
}

// Topics returns the topics, those with the most open letters first.
func (c *Client) Topics(ctx context.Context) ([]api.Topic, error) {
	return get[[]api.Topic](ctx, c, nil, "topics")
}

// Topic returns a topic.
func (c *Client) Topic(ctx context.Context, topic string) (api.Topic, error) {
	return get[api.Topic](ctx, c, nil, "topics", topic)
}

// Groups returns the open letters by class and fingerprint.
func (c *Client) Groups(ctx context.Context, topic string, f api.Filter) ([]api.Group, error) {
	return get[[]api.Group](ctx, c, query(&f), "topics", topic, "groups")
}

// Classes returns the open letters by class, and each class by fingerprint.
func (c *Client) Classes(ctx context.Context, topic string, f api.Filter) ([]api.Class, error) {
	return get[[]api.Class](ctx, c, query(&f), "topics", topic, "classes")
}

// Acts returns who did what on a topic, the latest first. A limit of 0 is the server's.
func (c *Client) Acts(ctx context.Context, topic string, limit int) ([]api.Act, error) {
	q := url.Values{}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[[]api.Act](ctx, c, q, "topics", topic, "audit")
}

// Values counts the open letters by a field: header:NAME, or a path such as value.customer.
func (c *Client) Values(ctx context.Context, topic, by string, f api.Filter) (api.Values, error) {
	q := query(&f)
	q.Set("by", by)
	return get[api.Values](ctx, c, q, "topics", topic, "values")
}

// Letters returns a page of letters, the newest first. cursor is the Next of the page before, and
// empty for the first page. A limit of 0 is the server's.
func (c *Client) Letters(ctx context.Context, topic string, f api.Filter, cursor string, limit int) (api.Letters, error) {
	q := query(&f)
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.Letters](ctx, c, q, "topics", topic, "letters")
}

// Letter returns a letter with its history.
func (c *Client) Letter(ctx context.Context, topic string, partition int32, offset int64) (api.LetterDetail, error) {
	return get[api.LetterDetail](ctx, c, nil, "topics", topic, "letters", partition, offset)
}

// Export returns the letters as redrive export writes them; all includes resolved ones. The caller
// closes it. An export that ended early gives an error when it is read.
func (c *Client) Export(ctx context.Context, topic string, f api.Filter, all bool) (io.ReadCloser, error) {
	q := query(&f)
	if all {
		q.Set("all", "true")
	}
	answer, err := c.send(ctx, http.MethodGet, path("topics", topic, "export"), q, nil, linesType, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Plan returns what a run would do.
func (c *Client) Plan(ctx context.Context, topic string, r api.RunRequest) (api.Plan, error) {
	return post[api.Plan](ctx, c, r, "topics", topic, "plan")
}

// Start begins a run. With a key that is not empty it can be repeated: each server answers with the
// run that the first request began.
func (c *Client) Start(ctx context.Context, topic string, r api.RunRequest, key string) (api.Run, error) {
	return call[api.Run](ctx, c, http.MethodPost, path("topics", topic, "runs"), nil, r, keyed(key))
}

// Redrive begins a run of one letter. key is as for Start.
func (c *Client) Redrive(ctx context.Context, topic string, partition int32, offset int64, o api.RunOptions, key string) (api.Run, error) {
	return call[api.Run](ctx, c, http.MethodPost, path("topics", topic, "letters", partition, offset, "redrive"), nil, o, keyed(key))
}

func keyed(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}

// Runs returns the runs of a topic, or of all topics if that is empty, the newest first. limit
// bounds those that have ended; 0 is the server's 1,000, and it allows 10,000.
func (c *Client) Runs(ctx context.Context, topic string, limit int) ([]api.Run, error) {
	if topic == "" {
		return get[[]api.Run](ctx, c, limited(limit), "runs")
	}
	return get[[]api.Run](ctx, c, limited(limit), "topics", topic, "runs")
}

func limited(limit int) url.Values {
	if limit == 0 {
		return nil
	}
	return url.Values{"limit": {strconv.Itoa(limit)}}
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, topic, run string) (api.Run, error) {
	return get[api.Run](ctx, c, nil, "topics", topic, "runs", run)
}

// Abort ends a run for good.
func (c *Client) Abort(ctx context.Context, topic, run string, r api.AbortRequest) (api.Run, error) {
	return post[api.Run](ctx, c, r, "topics", topic, "runs", run, "abort")
}

// Resume continues a run.
func (c *Client) Resume(ctx context.Context, topic, run string, r api.ResumeRequest) (api.Run, error) {
	return post[api.Run](ctx, c, r, "topics", topic, "runs", run, "resume")
}

// Discard discards the open letters that a filter selects.
func (c *Client) Discard(ctx context.Context, topic string, r api.BulkDiscardRequest) (api.Resolved, error) {
	return post[api.Resolved](ctx, c, r, "topics", topic, "discard")
}

// DiscardLetter discards a letter.
func (c *Client) DiscardLetter(ctx context.Context, topic string, partition int32, offset int64, r api.DiscardRequest) (api.Resolved, error) {
	return post[api.Resolved](ctx, c, r, "topics", topic, "letters", partition, offset, "discard")
}

// ReopenLetter withdraws that a letter was discarded, or redriven to where no consumer can have its
// copy.
func (c *Client) ReopenLetter(ctx context.Context, topic string, partition int32, offset int64, r api.ReopenRequest) (api.Resolved, error) {
	return post[api.Resolved](ctx, c, r, "topics", topic, "letters", partition, offset, "reopen")
}

// Rules returns the rules with their states.
func (c *Client) Rules(ctx context.Context) ([]api.Rule, error) {
	return get[[]api.Rule](ctx, c, nil, "rules")
}

// RuleHistory returns what a rule did, the newest first. limit is as for [Client.Runs].
func (c *Client) RuleHistory(ctx context.Context, rule string, limit int) ([]api.RuleEvent, error) {
	return get[[]api.RuleEvent](ctx, c, limited(limit), "rules", rule, "history")
}

// TryRetention returns what the retention of a topic would delete now.
func (c *Client) TryRetention(ctx context.Context, topic string) (api.RetentionReport, error) {
	return get[api.RetentionReport](ctx, c, nil, "topics", topic, "retention")
}

// ApplyRetention deletes now what the retention of a topic deletes by the clock.
func (c *Client) ApplyRetention(ctx context.Context, topic string) (api.RetentionReport, error) {
	return post[api.RetentionReport](ctx, c, struct{}{}, "topics", topic, "retention")
}

// TryRule returns what a rule would do now.
func (c *Client) TryRule(ctx context.Context, rule, topic string) (api.RuleOnTopic, error) {
	return get[api.RuleOnTopic](ctx, c, nil, "rules", rule, "topics", topic, "dry-run")
}

// PauseRule keeps a rule from beginning runs on a topic.
func (c *Client) PauseRule(ctx context.Context, rule, topic string, r api.PauseRequest) (api.RuleOnTopic, error) {
	return post[api.RuleOnTopic](ctx, c, r, "rules", rule, "topics", topic, "pause")
}

// ResumeRule lets a rule begin runs on a topic again.
func (c *Client) ResumeRule(ctx context.Context, rule, topic string, r api.PauseRequest) (api.RuleOnTopic, error) {
	return post[api.RuleOnTopic](ctx, c, r, "rules", rule, "topics", topic, "resume")
}

// IsProblem reports whether an error is a problem of a kind.
func IsProblem(err error, kind api.Kind) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Kind() == kind
}

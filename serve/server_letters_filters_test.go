package serve_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// placed writes a letter to the first partition, as written at a time.
func (c *cluster) placed(m headers.Meta, entered time.Time, value string) {
	c.T.Helper()
	c.n++
	m.Original, m.Attempts, m.Message = headers.Position{Topic: "orders", Offset: c.n}, max(m.Attempts, 1), cmp.Or(m.Message, "it failed")
	r := &kgo.Record{Topic: "orders.dlq", Timestamp: entered, Value: []byte(value), Headers: m.Append(nil)}
	if err := c.Client.ProduceSync(c.T.Context(), r).FirstErr(); err != nil {
		c.T.Fatal(err)
	}
}

// Each filter that the index decides selects the letters that it names and no others: in the list,
// in the groups, in an export and on the console, which has the same but for when letters were
// written.
func TestServer_FiltersByWhatIsKnownOfALetter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	day := time.Now().UTC().Truncate(time.Hour).Add(-24 * time.Hour)
	at := func(hours int) time.Time { return day.Add(time.Duration(hours) * time.Hour) }
	for i, m := range []headers.Meta{ // by offset
		{Class: "a.x", Fingerprint: "00000000000000f1", Group: "billing", Reason: headers.ReasonTerminal},
		{Class: "a.y", Fingerprint: "00000000000000f2", Group: "billing", Reason: headers.ReasonExhausted},
		{Class: "b", Fingerprint: "00000000000000f1", Group: "mail", Reason: headers.ReasonTerminal},
		{Class: "b", Fingerprint: "00000000000000f3", Group: "mail", Reason: headers.ReasonDecode},
	} {
		m.FailedAt, m.FirstFailedAt = at(2*i), at(2*i)
		c.placed(m, at(2*i+1), "{}")
	}
	opens(t, cl, "orders.dlq", 4)
	for name, test := range map[string]struct {
		filter api.Filter
		want   []int64
	}{
		"class":               {api.Filter{Class: []string{"a.*"}}, []int64{0, 1}},
		"fingerprint":         {api.Filter{Fingerprint: []string{"00000000000000f1"}}, []int64{0, 2}},
		"fingerprints":        {api.Filter{Fingerprint: []string{"00000000000000f2", "00000000000000f3"}}, []int64{1, 3}},
		"group":               {api.Filter{Group: []string{"mail"}}, []int64{2, 3}},
		"no group":            {api.Filter{Group: []string{"nobody"}}, nil},
		"reason":              {api.Filter{Reason: []string{"terminal"}}, []int64{0, 2}},
		"reasons":             {api.Filter{Reason: []string{"exhausted", "decode"}}, []int64{1, 3}},
		"since, inclusive":    {api.Filter{Since: at(4)}, []int64{2, 3}},
		"until, exclusive":    {api.Filter{Until: at(4)}, []int64{0, 1}},
		"between":             {api.Filter{Since: at(1), Until: at(6)}, []int64{1, 2}},
		"entered since":       {api.Filter{EnteredSince: at(5)}, []int64{2, 3}},
		"entered until":       {api.Filter{EnteredUntil: at(5)}, []int64{0, 1}},
		"entered between":     {api.Filter{EnteredSince: at(2), EnteredUntil: at(6)}, []int64{1, 2}},
		"failed, not entered": {api.Filter{Since: at(2), EnteredUntil: at(4)}, []int64{1}},
		"several":             {api.Filter{Fingerprint: []string{"00000000000000f1"}, Group: []string{"mail"}, Reason: []string{"terminal"}}, []int64{2}},
	} {
		var got []int64
		page, err := cl.Letters(t.Context(), "orders.dlq", test.filter, "", 0)
		for _, l := range page.Letters {
			got = append(got, l.Offset)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: the letters are %v, %v; want %v", name, got, err, test.want)
		}
		groups, err := cl.Groups(t.Context(), "orders.dlq", test.filter)
		sum := 0
		for _, g := range groups {
			sum += int(g.Open)
		}
		if err != nil || sum != len(test.want) {
			t.Errorf("%s: the groups have %d letters, %v; want %d", name, sum, err, len(test.want))
		}
		if !test.filter.EnteredSince.IsZero() || !test.filter.EnteredUntil.IsZero() {
			continue
		}
		q := url.Values{"class": test.filter.Class, "fingerprint": test.filter.Fingerprint, "group": test.filter.Group, "reason": test.filter.Reason}
		for key, at := range map[string]time.Time{"since": test.filter.Since, "until": test.filter.Until} {
			if !at.IsZero() {
				q.Set(key, at.Format(time.RFC3339))
			}
		}
		body := get(t, s, "/topics/orders.dlq?"+q.Encode())
		for offset := range int64(4) {
			if has := strings.Contains(body, fmt.Sprintf(`id="letter-0-%d"`, offset)); has != slices.Contains(test.want, offset) {
				t.Errorf("%s: the page has letter %d: %v", name, offset, has)
			}
		}
	}
}

// Groups are counted without reading letters. A filter that takes reading them is refused before
// anything is made of it, whatever it says.
func TestServer_RefusesToReadLettersForGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 0)
	for _, f := range []api.Filter{{Where: "("}, {Where: "true"}, {Key: []string{"a"}}, {Header: []string{"a"}}, {Attempts: "x"}} {
		if _, err := cl.Groups(t.Context(), "orders.dlq", f); !client.IsProblem(err, api.BadFilter) || !strings.Contains(err.Error(), "groups are counted without reading the letters") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// An empty filter, as of a shell variable that is not set, selected all letters. It is refused
// wherever letters are chosen, as the program refuses it. A key may be empty: a record's is.
func TestServer_RefusesEmptyFilters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	opens(t, c.clientOf(s, ""), "orders.dlq", 0)
	const topic = "/api/v1/topics/orders.dlq"
	paths := []string{"/groups?class=", "/export?where=", "/letters?class=%20", "/letters?class=a&class="}
	for f := range reflect.TypeFor[api.Filter]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("query"), ","); name != "key" {
			paths = append(paths, "/letters?"+name+"=")
		}
	}
	for _, path := range paths {
		if answer := send(t, s, http.MethodGet, topic+path, ""); answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("GET %s: %d, want 422", path, answer.StatusCode)
		}
	}
	for _, path := range []string{"/plan", "/runs", "/discard"} {
		for _, filter := range []string{`{"where":""}`, `{"attempts":" "}`, `{"class":[]}`, `{"group":[""]}`, `{"key":[]}`} {
			body := `{"why":"w","expect":1,"filter":` + filter + `}`
			answer := send(t, s, http.MethodPost, topic+path, body)
			if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(text), "is empty: perhaps") {
				t.Errorf("POST %s %s: %d %s, want 422", path, body, answer.StatusCode, text)
			}
		}
	}
	for _, path := range []string{"/letters?key=", "/letters?cursor=&limit="} {
		if answer := send(t, s, http.MethodGet, topic+path, ""); answer.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %d, want 200", path, answer.StatusCode)
		}
	}
	if answer := send(t, s, http.MethodPost, topic+"/plan", `{"filter":{"key":[""]}}`); kindOf(t, "a plan of an empty key", answer) != api.NothingSelected {
		t.Error("a plan of an empty key was refused")
	}
}

// An expression cannot be judged on some letters. These are not selected, and the answer says on
// how many: in a list, on the page, in a plan, and when a discard counts. With redaction the text
// quotes no letter.
func TestServer_NamesWhereAnExpressionFailed(t *testing.T) {
	t.Parallel()
	for _, redacts := range []bool{false, true} {
		c := newCluster(t, "orders")
		cfg := serve.Config{}
		if redacts {
			cfg.Redact.Paths = []string{"card"}
		}
		s, _ := c.run(cfg)
		cl := c.clientOf(s, "")
		now := time.Now()
		for i, value := range []string{`{"n":1}`, `{"n":"secret"}`, `{"n":7}`, `no JSON`} {
			c.placed(headers.Meta{Class: fmt.Sprint("c", i%2), Reason: headers.ReasonTerminal, Group: "billing", FirstFailedAt: now, FailedAt: now}, now, value)
		}
		opens(t, cl, "orders.dlq", 4)
		f := api.Filter{Where: "value.n > 5"}
		page, err := cl.Letters(t.Context(), "orders.dlq", f, "", 0)
		if err != nil || len(page.Letters) != 1 || page.Letters[0].Offset != 2 || !strings.HasPrefix(page.Problem, "where failed on 2 letters: not selected; the first is orders.dlq/0/") {
			t.Errorf("the letters are %+v, %v", page, err)
		}
		if quotes := strings.Contains(page.Problem, ": column"); redacts && (quotes || strings.Contains(page.Problem, "secret")) {
			t.Errorf("with redaction: %s", page.Problem)
		}
		words(t, s, "/topics/orders.dlq?where="+url.QueryEscape(f.Where), "where failed on 2 letters: not selected")
		// letters that the rest of the filter leaves out are not judged
		if page, err = cl.Letters(t.Context(), "orders.dlq", api.Filter{Where: f.Where, Class: []string{"c0"}}, "", 0); err != nil || page.Problem != "" || len(page.Letters) != 1 {
			t.Errorf("of one class: %+v, %v", page, err)
		}
		if page, err = cl.Letters(t.Context(), "orders.dlq", api.Filter{Where: f.Where, Offset: []string{"0:2"}}, "", 0); err != nil || page.Problem != "" || len(page.Letters) != 1 {
			t.Errorf("of one letter: %+v, %v", page, err)
		}
		request := api.BulkDiscardRequest{Filter: f, Expect: 3, DiscardRequest: api.DiscardRequest{Why: "moot"}}
		if _, err := cl.Discard(t.Context(), "orders.dlq", request); !client.IsProblem(err, api.WrongNumber) || !strings.Contains(err.Error(), "where failed on 2 letters: not selected") {
			t.Errorf("a discard of 3: %v", err)
		}
		opens(t, cl, "orders.dlq", 4)
		request.Expect = 1
		if got, err := cl.Discard(t.Context(), "orders.dlq", request); err != nil || got.Letters != 1 {
			t.Errorf("a discard of 1: %+v, %v", got, err)
		}
		opens(t, cl, "orders.dlq", 3)
	}
}

// Retention took a letter that a user has open in a browser, or a link to. That is a problem of its
// own, for each thing that can be done to a letter, and on the page in words. No other letter is
// touched.
func TestServer_AnExpiredLetterIsAProblem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	now := time.Now()
	for range 3 {
		c.placed(headers.Meta{Class: "c", Reason: headers.ReasonTerminal, Group: "billing", FirstFailedAt: now, FailedAt: now}, now, "{}")
	}
	opens(t, cl, "orders.dlq", 3)
	const letter = "/topics/orders.dlq/letters/0/1"
	words(t, s, letter, "Dead-lettered")
	until := kadm.Offsets{}
	until.AddOffset("orders.dlq", 0, 2, -1)
	if _, err := kadm.NewClient(c.Client).DeleteRecords(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	opens(t, cl, "orders.dlq", 1)
	_, err := cl.Letter(t.Context(), "orders.dlq", 0, 1)
	if !client.IsProblem(err, api.NoLetter) || !strings.Contains(err.Error(), "lower ones have expired or were pruned") {
		t.Errorf("the letter: %v", err)
	}
	for what, test := range map[string]struct {
		do   func() error
		want api.Kind
	}{
		"discard": {func() error {
			_, err := cl.DiscardLetter(t.Context(), "orders.dlq", 0, 1, api.DiscardRequest{Why: "x"})
			return err
		}, api.NoLetter},
		"reopen": {func() error {
			_, err := cl.ReopenLetter(t.Context(), "orders.dlq", 0, 1, api.ReopenRequest{Why: "x"})
			return err
		}, api.NoLetter},
		"redrive": {func() error {
			_, err := cl.Redrive(t.Context(), "orders.dlq", 0, 1, api.RunOptions{}, "")
			return err
		}, api.NothingSelected},
	} {
		if err := test.do(); !client.IsProblem(err, test.want) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
	eventually(t, "the page says so", func() bool { // the last one counts for a second
		w, text := visit(t, s, httptest.NewRequest(http.MethodGet, letter, nil))
		return w.Code == http.StatusNotFound && strings.Contains(text, "expired")
	})
	for _, act := range []string{"redrive", "discard", "reopen"} {
		form := url.Values{"do": {"begin"}, "key": {"k"}, "why": {"w"}, "expect": {"1"}}
		if w, text := (&person{t: t, s: s}).do(http.MethodPost, letter+"/"+act, form); w.Code != http.StatusNotFound || !strings.Contains(text, "expired") {
			t.Errorf("%s on the console: %d: %s", act, w.Code, text)
		}
	}
	summary, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
	if err != nil || summary.Open != 1 || summary.Resolved != 0 {
		t.Errorf("the topic has %+v, %v", summary, err)
	}
}

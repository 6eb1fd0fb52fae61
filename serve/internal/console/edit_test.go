package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
)

// What somebody types is shown as a diff before it is sent, and that is what is sent.
func TestEdit_IsADiffBeforeItIsSent(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	data.value = "one\ntwo\nthree"
	data.clear = true
	const path = "/topics/orders.dlq/letters/1/6/redrive"
	has(t, "the form", look(t, c, path, http.StatusOK), "Letter 1/6 of orders.dlq", "Set headers", "Patch the value", "Or type the value", "one two three", "Show what changes, and plan")
	w := send(c, path, url.Values{"do": {"plan"}, "set": {"currency: EUR\r\nx: a: b"}, "unset": {"old"}, "text": {"one\r\n2\r\nthree"}, "rate": {"5"}})
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	var diff []string
	for _, n := range parse(t, strings.NewReader(w.Body.String())) {
		if n.Data == "ins" || n.Data == "del" {
			diff = append(diff, textOf(n))
		}
	}
	if want := []string{"removed: - two", "added: + 2"}; !slices.Equal(diff[len(diff)-2:], want) {
		t.Errorf("the diff is %q", diff)
	}
	action, fields := formIn(t, w)
	fields.Set("expect", "1902")
	if w := send(c, action, fields); w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	e := data.last.Edit
	if e.Value == nil || e.Value.Text != "one\n2\nthree" || len(e.SetHeaders) != 2 || e.SetHeaders[1].Key != "x" || e.SetHeaders[1].Value.Text != "a: b" || !slices.Equal(e.UnsetHeaders, []string{"old"}) ||
		e.Patch != nil || data.last.Pace.Rate != 5 || data.last.Filter.Offset[0] != "1:6" {
		t.Errorf("the run is %+v", data.last)
	}
	// a value as it was shown is no change
	if w := send(c, path, url.Values{"do": {"plan"}, "text": {"one\r\ntwo\r\nthree"}}); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "What changes") || data.last.Edit.Value != nil {
		t.Errorf("nothing was changed: %d, %+v", w.Code, data.last.Edit)
	}
	// an empty value is one
	if send(c, path, url.Values{"do": {"plan"}, "text": {""}}); data.last.Edit.Value == nil || data.last.Edit.Value.Text != "" {
		t.Errorf("the value was emptied: %+v", data.last.Edit)
	}
}

// An edit that cannot be understood, or applied, is neither planned nor sent, and the page says so.
func TestEdit_BadInputSendsNothing(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	data.clear = true
	const path = "/topics/orders.dlq/letters/1/6/redrive"
	for _, do := range []string{"plan", "begin"} {
		data.slow = nil
		w := send(c, path, url.Values{"do": {do}, "set": {"currency"}, "expect": {"1902"}, "key": {"k"}})
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not a header") || strings.Contains(w.Body.String(), "Send 1,902") {
			t.Errorf("%s: %d: %s", do, w.Code, w.Body)
		}
		data.slow = &pageError{http.StatusConflict, "patch: the value is no JSON"}
		w = send(c, path, url.Values{"do": {do}, "patch": {"{}"}, "expect": {"1902"}, "key": {"k"}})
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "no JSON") || strings.Contains(w.Body.String(), "Send 1,902") {
			t.Errorf("%s: %d: %s", do, w.Code, w.Body)
		}
	}
	if n := data.runs.Load(); n != 0 {
		t.Errorf("%d runs began", n)
	}
	if w := send(c, path, url.Values{"do": {"plan"}, "text": {strings.Repeat("x", mostEdit)}}); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too long: %d", w.Code)
	}
}

// A value of which the page lacks something cannot be typed anew: what is missing would be lost.
func TestTyped_LosesNothing(t *testing.T) {
	t.Parallel()
	text := func(s string) api.Bytes { return api.Bytes{Text: &s, Size: len(s)} }
	for name, test := range map[string]struct {
		value    api.Bytes
		redacted bool
		cannot   string
	}{
		"text":       {value: text("a\nb\t")},
		"null":       {value: api.Bytes{}},
		"empty":      {value: text("")},
		"hidden":     {value: text("a"), redacted: true, cannot: "hides parts"},
		"cut":        {value: api.Bytes{Text: text("a").Text, Size: 2 << 20, Cut: true}, cannot: "can be typed"},
		"long":       {value: text(strings.Repeat("x", mostTyped+1)), cannot: "can be typed"},
		"bytes":      {value: api.Bytes{Base64: []byte{0xff}, Size: 1}, cannot: "not text"},
		"a return":   {value: text("a\r\nb"), cannot: "does not keep"},
		"a control":  {value: text("a\x00b"), cannot: "does not keep"},
		"directions": {value: text("a\u202eb"), cannot: "does not keep"},
	} {
		got, cannot := typed(&api.LetterDetail{Redacted: test.redacted, Content: &api.Content{Value: test.value}})
		want := ""
		if test.cannot == "" && test.value.Text != nil {
			want = *test.value.Text
		}
		if got != want || !strings.Contains(cannot, test.cannot) || (cannot == "") != (test.cannot == "") {
			t.Errorf("%s: %q, %q", name, got, cannot)
		}
	}
	if _, cannot := typed(&api.LetterDetail{}); cannot == "" {
		t.Error("a value that is not there can be typed")
	}
}

// Changes are compared in the same way on both sides, and are said although only bytes differ.
func TestChanges_AreSaid(t *testing.T) {
	t.Parallel()
	of := func(value string) *api.Content { return &api.Content{Value: api.Bytes{Text: &value, Size: len(value)}} }
	kinds := func(c *changes) []string {
		all := map[string]bool{}
		for _, l := range append(c.Headers, c.Value...) {
			all[l.Kind] = true
		}
		return slices.Sorted(maps.Keys(all))
	}
	for name, test := range map[string]struct {
		before, after *api.Content
		want          []string
	}{
		"json":        {of(`{"a":1,"b":2}`), of(`{"a":1,"b":3}`), []string{"gone", "new", "same"}},
		"white space": {of(`{"a":1}`), of(`{"a": 1}`), []string{"gone", "new"}},
		"no json":     {of(`{"a":1}`), of(`{"a":`), []string{"gone", "new"}},
		"emptied":     {of("x"), of(""), []string{"gone", "new"}},
		"null":        {&api.Content{}, of(""), []string{"gone", "new"}},
		"nothing":     {of("x"), of("x"), nil},
	} {
		if got := kinds(changesOf(test.before, test.after)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

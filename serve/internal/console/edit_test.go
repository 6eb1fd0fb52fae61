package console

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
)

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

package where

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/redact"
)

func TestField_ReadsHeadersAndMembers(t *testing.T) {
	t.Parallel()
	l := &dlq.Letter{Record: &kgo.Record{
		Value: []byte(`{"customer":"acme","n":12345678901234567890,"deep":{"a b":[true,null,{"x":[1,2]}]},"none":null}`),
		Headers: []kgo.RecordHeader{
			{Key: "tenant", Value: []byte("first")}, {Key: "tenant", Value: []byte("acme")}, {Key: "id", Value: []byte{0xff, 0}}, {Key: "a:b", Value: []byte("c")}, {Key: "null"},
		},
	}}
	for text, want := range map[string]string{
		"header:tenant": "acme", "header:id": "0xff00", "header:a:b": "c", "header:Tenant": "-", "header:null": "-",
		"value.customer": "acme", "value.n": "12345678901234567890", `value.deep["a b"][0]`: "true", `value["deep"]["a b"][2].x`: "[1,2]",
		`value.deep["a b"][1]`: "-", "value.none": "-", "value.none.x": "-", "value.customer.x": "-", "value.customer[0]": "-", `value.deep["a b"][9]`: "-", "value.Customer": "-",
	} {
		f, err := ParseField(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, ok := f.Of(l)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "is no field", "header:": "is no field", "value": "is no field", "tenant": "is no field", "10x": "is no field",
		"values.x": `"values.x" at column 6: a . and a name`, "value.": "at column 6", "value.a..b": "at column 8", "value[x]": "an index such as", `value["a"`: "a ] is missing",
		"value[-1]": "an index", "value[99999999999]": "an index", "value.a b": "at column 6", "value[*]": "an index", "value." + strings.Repeat("a", 1<<20): "is no field",
	} {
		if _, err := ParseField(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.50s: %v, want %q", text, err, want)
		}
	}
}

// What is hidden is counted, and never shown: a member, all of a value that is no JSON, a header,
// and a text that a pattern fits.
func TestField_CountsNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse([]redact.Text{{Text: "customer"}}, []redact.Text{{Text: "token"}}, []redact.Text{{Text: "hunter[0-9]+"}})
	if err != nil {
		t.Fatal(err)
	}
	letter := func(value string) *dlq.Letter {
		return &dlq.Letter{Record: &kgo.Record{Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "token", Value: []byte("secret")}, {Key: "who", Value: []byte("a hunter42")}}}}
	}
	letters := []*dlq.Letter{letter(`{"customer":"secret","deep":{"customer":"secret"},"note":"hunter42"}`), letter(`no JSON, but "customer": secret`), letter(`{"note":"x"}`)}
	for text, want := range map[string]dlq.TopValues{
		"value.customer": {Hidden: 2, Without: 1}, "value.note": {Hidden: 2, Top: []dlq.ValueCount{{Value: "x", Open: 1, AtLeast: 1}}},
		"header:token": {Hidden: 3}, "header:who": {Hidden: 3}, "header:none": {Without: 3},
	} {
		f, err := ParseField(text)
		if err != nil {
			t.Fatal(err)
		}
		var c dlq.ValueCounts
		for _, l := range letters {
			shown, hidden := rules.Letter(l)
			f.Count(shown, hidden, &c)
		}
		if got := c.Top(); got.Hidden != want.Hidden || got.Without != want.Without || !slices.Equal(got.Top, want.Top) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func FuzzParseField(f *testing.F) {
	for _, s := range []string{"header:a", "value.a", `value["a\"b"][0].c`, "value[", `value["`, "value.\xff"} {
		f.Add(s, `{"a":[{"c":1}]}`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		field, err := ParseField(text)
		if err != nil {
			return
		}
		got, ok := field.Of(&dlq.Letter{Record: &kgo.Record{Value: []byte(value)}})
		if ok && !json.Valid([]byte(value)) {
			t.Errorf("%q of %q is %q", text, value, got)
		}
	})
}

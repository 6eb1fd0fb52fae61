package where

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// An expression cannot make a server compute for ever, nor take more memory than it has.
func TestExpression_IsBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`len(repeat(repeat("x", 900000), 1000000)) > 0`:  "column 12: repeat cannot be used here",
		`let a = text + text; let b = a + a; len(b) > 0`: "let and ; cannot be used here",
		`true; false`:                                                    "let and ; cannot be used here",
		`reduce(value, #acc + #acc, "x") == ""`:                          "reduce cannot be used here",
		`join(split(text, ""), text) == ""`:                              "join cannot be used here",
		`replace(text, "a", text) == ""`:                                 "replace cannot be used here",
		`len(uniq(value)) > 1`:                                           "uniq cannot be used here",
		`toJSON(toJSON(value)) == ""`:                                    "toJSON cannot be used here",
		`toBase64(text) == ""`:                                           "toBase64 cannot be used here",
		`all(1..900000, # > 0)`:                                          "a range here has at most 10000 numbers",
		`all(1..len(text), # > 0)`:                                       "a range here has at most 10000 numbers",
		`all(1..1000, all(1..1000, all(1..1000, # > 0)))`:                "a range here has at most 100 numbers",
		`all(value, # in value)`:                                         "column 17: value cannot be used for each element of a list",
		`all(value, all(value, # > 0))`:                                  "value cannot be used for each element of a list",
		`any(value, text contains #)`:                                    "text cannot be used for each element of a list",
		`any(value, $env.text contains #)`:                               "$env cannot be used for each element of a list",
		`any(value, headers[#] == "x")`:                                  "headers cannot be used for each element of a list",
		`text matches text`:                                              "matches takes a pattern in quotes",
		strings.Repeat(`text + `, 17) + `text == ""`:                     "there are more than 16 additions",
		`text matches "(` + strings.Repeat(".{0,1000}", 400) + `)*zz$"`:  "more than 1000 steps",
		`text matches "(.{0,1000}.{0,1000}.{0,1000})*zz$"`:               "column 6: the patterns of matches have more than 1000 steps",
		`text matches "((a{30}){30}){30}"`:                               "invalid repeat count",
		`text matches "(.{30}.{4}){30,}"`:                                "more than 1000 steps",
		strings.Repeat(`class matches "x{300}" or `, 4) + `text == ""`:   "column 85: the patterns of matches have more than 1000 steps",
		`not (text matches "a{800}") and any(value, # matches "b{800}")`: "more than 1000 steps",
		`attempts matches "1"`:                                           "cannot use int as argument (type string) to call matches",
		`text matches "("`:                                               "column 6: error parsing regexp: missing closing )",
		strings.Repeat(" ", 4096) + "true":                               "the expression has 4100 characters, and at most 4096 are allowed",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, broken := range []string{"", "1 +"} {
		if _, err := Compile(broken); err == nil || !strings.HasPrefix(err.Error(), "column ") {
			t.Errorf("%q: %v", broken, err)
		}
	}
	// If each of so many elements were compared with all, one letter would take many minutes.
	large := []byte("[" + strings.Repeat("1,", 250_000) + "1]")
	for _, text := range []string{
		`value.type == "SendMail"`, `message contains "timeout"`, `value.amount > 100`, `headers["tenant"] in ["north", "south"]`, `failedAt > now() - duration("1h")`,
		`any(value, # in 1..5)`, `all(value, # > 0 and class != "x" and attempts < 5)`, `sum(value) > 3`, `len(filter(value, # > 1)) == 0`, `attempts in 2..9000`,
		`text + key == "a"`, `text matches "^[0-9]+$"`, `any(value, any(#.items, .sku == "TEA"))`,
	} {
		w, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		began := time.Now()
		w.Match(&dlq.Letter{Record: &kgo.Record{Value: large}})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %v", text, took)
		}
	}
}

// The longer a pattern is, the shorter is the text that it may be compared with. What is compared
// counts for a letter as a whole, so that elements of a list count together.
func TestExpression_BoundsTheTextsOfMatches(t *testing.T) {
	t.Parallel()
	const tooLong = "the text is too long for matches"
	text := `["` + strings.Repeat("a", 900_000) + `"]`
	many := "[" + strings.Repeat(`"aaaa",`, 100_000) + `"z"]`
	for _, test := range []struct{ where, value, want string }{
		{`text matches "z$"`, text, ""},
		{`text matches "(.{0,300})*zz$"`, text, tooLong},
		{`any(value, # matches "(.{0,300})*zz$")`, many, tooLong},
		{`any(value, # matches "z$")`, many, "yes"},
		{`any(1..10000, text matches "a")`, "{}", "cannot be used"},
		{`key matches "a"`, "{}", ""},
		{`not (key matches "a")`, "{}", "yes"},
		{`value.n matches "1"`, `{"n":1}`, "matches takes a text, not int"},
		{`value.n matches "^x" and not (value.n matches "y")`, `{"n":"xz"}`, "yes"},
	} {
		w, err := Compile(test.where)
		if err != nil {
			if test.want == "" || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", test.where, err)
			}
			continue
		}
		for range 2 { // one letter does not count for the next
			w.First, w.Failed = nil, 0
			yes := w.Match(&dlq.Letter{Record: &kgo.Record{Value: []byte(test.value)}})
			switch {
			case test.want == "" || test.want == "yes":
				if w.First != nil || yes != (test.want == "yes") {
					t.Errorf("%s: %v, %v", test.where, yes, w.First)
				}
			case w.First == nil || yes || !strings.Contains(w.First.Error(), test.want):
				t.Errorf("%s: %v, %v, want %q", test.where, yes, w.First, test.want)
			}
		}
	}
}

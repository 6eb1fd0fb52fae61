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
		`true; false`:                                     "let and ; cannot be used here",
		`reduce(value, #acc + #acc, "x") == ""`:           "reduce cannot be used here",
		`join(split(text, ""), text) == ""`:               "join cannot be used here",
		`replace(text, "a", text) == ""`:                  "replace cannot be used here",
		`len(uniq(value)) > 1`:                            "uniq cannot be used here",
		`toJSON(toJSON(value)) == ""`:                     "toJSON cannot be used here",
		`toBase64(text) == ""`:                            "toBase64 cannot be used here",
		`all(1..900000, # > 0)`:                           "a range here has at most 10000 numbers",
		`all(1..len(text), # > 0)`:                        "a range here has at most 10000 numbers",
		`all(1..1000, all(1..1000, all(1..1000, # > 0)))`: "a range here has at most 100 numbers",
		`all(value, # in value)`:                          "column 17: value cannot be used for each element of a list",
		`all(value, all(value, # > 0))`:                   "value cannot be used for each element of a list",
		`any(value, text contains #)`:                     "text cannot be used for each element of a list",
		`any(value, $env.text contains #)`:                "$env cannot be used for each element of a list",
		`any(value, headers[#] == "x")`:                   "headers cannot be used for each element of a list",
		`text matches text`:                               "matches takes a pattern in quotes",
		strings.Repeat(`text + `, 17) + `text == ""`:      "there are more than 16 additions",
		strings.Repeat(" ", 4096) + "true":                "the expression has 4100 characters, and at most 4096 are allowed",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
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
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", text, took)
		}
	}
}

package retrytopics

import (
	"strings"
	"testing"
)

func TestTemplate_InvalidIsRefusedWithEachReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    Naming
		want []string
	}{
		{Naming{Retry: "{topic}.retry"}, []string{"Retry", "{delay} must occur once"}},
		{Naming{Retry: "retry.{delay}"}, []string{"{topic} must occur once"}},
		{Naming{Retry: "{topic}{delay}.r"}, []string{"need text between them"}},
		{Naming{Retry: "{topic}.{group}.{group}.{delay}"}, []string{"{group} may occur once at most"}},
		{Naming{DLQ: "{topic}"}, []string{"DLQ", "no text besides the placeholders"}},
		{Naming{DLQ: "{topic}.{delay}.dlq"}, []string{"{delay} belongs in Retry only"}},
		{Naming{DLQ: "{topic}.{tenant}.dlq"}, []string{"unknown placeholder {tenant}"}},
		{Naming{DLQ: "{topic.dlq"}, []string{"a brace is not closed", "{topic} must occur once"}},
		{Naming{DLQ: "{topic}/dlq", Ledger: "{topic} ledger"}, []string{`DLQ "{topic}/dlq"`, `"/"`, `Ledger "{topic} ledger"`}},
		{Naming{Ledger: "{topic}_dlq"}, []string{"DLQ and Ledger give the same name", "differ in '.' and '_'"}},
		{Naming{Ledger: "{topic}.ledger.dlq"}, []string{"Ledger", `["t" "t.ledger"]`}},
	} {
		err := c.n.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", c.n)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %q does not say %q", c.n, err, want)
			}
		}
		if _, err := c.n.Siblings("orders", "g"); err == nil {
			t.Errorf("%+v: Siblings accepts what Validate refuses", c.n)
		}
	}
}

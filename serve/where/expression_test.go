package where

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

func FuzzExpression_NeverPanics(f *testing.F) {
	f.Add(`value.a.b > 1 and headers["x"] matches "("`, `{"a":{"b":1}}`)
	f.Add(`value[0:9] == [] or 1/0 > 2`, `[]`)
	f.Add(`len(text) > 1 and value in 1..3`, `2`)
	f.Fuzz(func(_ *testing.T, text, value string) {
		w, err := Compile(text)
		if err != nil {
			return
		}
		w.Match(&dlq.Letter{Record: &kgo.Record{Value: []byte(value)}})
	})
}

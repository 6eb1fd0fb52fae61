package edit

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

func compile(t *testing.T, stdin string, args ...string) (redrive.Edit, error) {
	t.Helper()
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f := AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Compile(strings.NewReader(stdin))
}

func parse(text string) (h []kgo.RecordHeader) {
	for field := range strings.FieldsSeq(text) {
		k, v, ok := strings.Cut(field, "=")
		x := kgo.RecordHeader{Key: k}
		if ok {
			x.Value = []byte(v)
		}
		h = append(h, x)
	}
	return h
}

package run

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func TestEditText_NamesEachHeaderOnce(t *testing.T) {
	t.Parallel()
	e := redrive.Edit{Patch: []byte("{}"), Set: []kgo.RecordHeader{{Key: "b"}, {Key: "a"}, {Key: "a"}}}
	if got := editText(e).Cell.(output.Pair).Table; got != "value (patch), headers a, b" {
		t.Errorf("a patch and headers are %q", got)
	}
}

package subject_test

import (
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// readers are the verbs that take TOPIC and filters.
var readers = [][]string{{"summary"}, {"list"}, {"list", "--all"}, {"export"}, {"discard", "--why", "x", "--yes"}}

func TestMain(m *testing.M) { roottest.RunTests(m) }

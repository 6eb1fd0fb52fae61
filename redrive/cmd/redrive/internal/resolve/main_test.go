package resolve_test

import (
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestMain(m *testing.M) { roottest.RunTests(m) }

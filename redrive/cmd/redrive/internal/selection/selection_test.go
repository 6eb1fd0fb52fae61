package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing_NamesPartitionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	s, err := compile(t, "--partition", "2,7,3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{3, 7}, s.Missing(3)); diff != "" {
		t.Errorf("missing partitions: %s", diff)
	}
}

package headers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

func TestStrip_RemovesExactlyTheReserved(t *testing.T) {
	t.Parallel()
	var all []kgo.RecordHeader
	for k := reserved.User + 1; k < reserved.Count; k++ {
		if !Reserved(k.String()) || reserved.Of(k.String()) != k {
			t.Errorf("key %d, %q, is not reserved", k, k.String())
		}
		all = append(all, kgo.RecordHeader{Key: k.String()}, kgo.RecordHeader{Key: "user", Value: []byte{byte(k)}})
	}
	before := clone(all)
	got := Strip(all)
	if len(got) != int(reserved.Count)-1 || slices.ContainsFunc(got, func(h kgo.RecordHeader) bool { return h.Key != "user" }) {
		t.Errorf("left: %q", keysOf(got))
	}
	for i := range got {
		if got[i].Value[0] != byte(i+1) {
			t.Errorf("order changed: %v", got)
			break
		}
	}
	if d := cmp.Diff(before, all); d != "" {
		t.Errorf("input changed (-before +after):\n%s", d)
	}
}

func TestStrip_ReturnsTheSliceItselfWithoutReserved(t *testing.T) {
	t.Parallel()
	h := userHeaders()
	if got := Strip(h); len(got) != len(h) || &got[0] != &h[0] {
		t.Error("Strip copied headers without a reserved one")
	}
	if got := Strip(nil); got != nil {
		t.Errorf("Strip(nil) = %v", got)
	}
	empty := []kgo.RecordHeader{}
	if got := Strip(empty); got == nil || len(got) != 0 {
		t.Errorf("Strip of an empty slice = %#v, want it back", got)
	}
	if got := Strip([]kgo.RecordHeader{{Key: Attempts}}); got != nil {
		t.Errorf("Strip of reserved ones only = %v, want nil", got)
	}
}

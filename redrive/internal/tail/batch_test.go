package tail

import (
	"slices"
	"testing"
)

func FuzzParseBatch_RefusesBrokenBatches(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 17))
	f.Add(slices.Concat(make([]byte, 11), []byte{100}, []byte{0, 0, 0, 0, 2}, make([]byte, 200)))
	f.Add(slices.Concat(make([]byte, 8), []byte{0xff, 0xff, 0xff, 0xff}, []byte{0, 0, 0, 0, 2}, make([]byte, 200)))
	f.Fuzz(func(t *testing.T, b []byte) {
		head, known, whole := parseBatch(b)
		if known && whole && (head.size < batchHeader || head.size > len(b)) {
			t.Errorf("a batch of %d bytes in %d", head.size, len(b))
		}
	})
}

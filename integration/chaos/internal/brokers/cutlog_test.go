package brokers

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// A log is cut between batches, and says what is gone. A short one keeps its half.
func TestCutLog_LosesWholeBatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		batches, size int
		kept          int64
		ok            bool
	}{
		{100, 1000, 84, true}, {10, 100, 5, true}, {1, 100, 0, false}, {0, 0, 0, false},
	} {
		var text []byte
		for i := range test.batches {
			text = binary.BigEndian.AppendUint64(text, uint64(10*i))
			text = binary.BigEndian.AppendUint32(text, uint32(test.size-batchHead))
			text = append(text, make([]byte, test.size-batchHead)...)
		}
		file := filepath.Join(t.TempDir(), "0.dat")
		must(t, os.WriteFile(file, text, 0o600))
		from, ok, err := cutLog(file)
		if err != nil || ok != test.ok || from != 10*test.kept {
			t.Errorf("%d batches: %d is gone, %v, %v; want %d, %v", test.batches, from, ok, err, 10*test.kept, test.ok)
		}
		info, err := os.Stat(file)
		must(t, err)
		if want := test.kept * int64(test.size); ok && info.Size() != want {
			t.Errorf("%d batches: %d bytes are left, want %d", test.batches, info.Size(), want)
		}
	}
}

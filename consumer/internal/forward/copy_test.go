package forward

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Records and copies are bounded in bytes. A thousand headers are most of a record.
func TestRecordSize_CountsEachHeader(t *testing.T) {
	t.Parallel()
	r := kgo.Record{Key: make([]byte, 1), Value: make([]byte, 2)}
	none := RecordSize(&r)
	for range 1000 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "four", Value: make([]byte, 16)})
	}
	if got, least := RecordSize(&r)-none, int64(1000*(40+4+16)); none < 3 || got < least {
		t.Errorf("a thousand headers have %d bytes, want %d at least", got, least)
	}
}

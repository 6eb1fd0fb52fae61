package dlq

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

func FuzzHeaderView_AgreesWithParse(f *testing.F) {
	keys := []string{
		headers.Group, headers.ErrorClass, reserved.ErrorFingerprint.String(), headers.FailureReason, headers.OriginalTopic, headers.OriginalPartition,
		headers.OriginalOffset, headers.FailedAt, reserved.RedriveID.String(), headers.MetaFields, "dlq-mine", "x",
	}
	f.Add([]byte("\x00billing\n\x03terminal\n\x04orders\n\x050\n\x067\n\x0799\n\x09id=AQAAAAAAAAAAAAAAAAAAAA;fp=0123456789abcdef;run=r;later=1;"))
	f.Add([]byte("\x0799\n\x02fedcba9876543210\n\x09fp=0123456789abcdef;fp=0123456789abcdef;broken"))
	f.Add([]byte("\x00billing\n\x03terminal\n\x04orders\n\x050\n\x067\n\x0799"))
	f.Add([]byte("\x0707\n\x07-1\n\x06-0\n\x059999999999"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h []kgo.RecordHeader
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(line) > 0 {
				h = append(h, kgo.RecordHeader{Key: keys[int(line[0])%len(keys)], Value: line[1:]})
			}
		}
		var g headerView
		g.read(h)
		l := newLetter(&kgo.Record{Headers: h}, builtin)
		if g.foreign() && l.MetaErr == nil {
			t.Error("foreign, but not by its headers")
		}
		if !g.located() {
			return
		}
		m := l.Meta
		if m.Original.Topic != "" && m.Original.Topic != string(g.topic) || int64(m.Original.Partition) != g.partition || m.Original.Offset != g.offset {
			t.Errorf("%+v is located at %s/%d/%d", m.Original, g.topic, g.partition, g.offset)
		}
		if g.failedAt >= 0 != !m.FailedAt.IsZero() || g.failedAt >= 0 && m.FailedAt.UnixMilli() != g.failedAt {
			t.Errorf("failed at %s, seen %d", m.FailedAt, g.failedAt)
		}
	})
}

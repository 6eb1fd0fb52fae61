package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// withoutMarkers removes the markers that end transactions. Markers come in log order: everything
// below a marker was read, or will never be delivered. So the floor passes a marker, and with it
// the records of an aborted transaction.
func withoutMarkers(recs []*kgo.Record) (data []*kgo.Record, size int64) {
	data = slices.DeleteFunc(recs, func(r *kgo.Record) bool { return r.Attrs.IsControl() })
	for _, r := range data {
		size += forward.RecordSize(r)
	}
	return data, size
}

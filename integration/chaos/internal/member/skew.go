package member

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// skewed moves the due times of records that a client reads.
type skewed time.Duration

// OnFetchRecordBuffered is called by the client.
func (s skewed) OnFetchRecordBuffered(r *kgo.Record) {
	for i, h := range r.Headers {
		if h.Key != headers.NotBefore {
			continue
		}
		if due, err := strconv.ParseInt(string(h.Value), 10, 64); err == nil && due > 0 {
			r.Headers[i].Value = strconv.AppendInt(nil, due-time.Duration(s).Milliseconds(), 10)
		}
	}
}

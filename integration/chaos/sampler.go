package chaos

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// sampler reads the groups' committed offsets and the topics' ends once a second.
type sampler struct {
	adm      *kadm.Client
	services []trace.Service
	tiers    []time.Duration // all that a service has ever had

	file io.Writer // for people who look for the cause of a find

	mu      sync.Mutex
	samples []trace.Sample
}

func (s *sampler) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, svc := range s.services {
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			got, err := s.take(within, svc)
			cancel()
			if err == nil {
				s.mu.Lock()
				s.samples = append(s.samples, got)
				s.mu.Unlock()
				got.Print(s.file)
			}
		}
	}
}

// take reads a service's offsets and then the ends of its topics.
func (s *sampler) take(ctx context.Context, svc trace.Service) (trace.Sample, error) {
	got := trace.Sample{
		Group: svc.Group, Began: time.Now().UnixNano(),
		Committed: map[trace.TP]int64{}, Metadata: map[trace.TP]string{}, Epochs: map[trace.TP]int32{}, Ends: map[trace.TP]int64{},
	}
	offsets, err := s.adm.FetchOffsets(ctx, svc.Group)
	if err != nil {
		return got, err
	}
	if err := offsets.Error(); err != nil {
		return got, err
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		at := trace.TP{Topic: o.Topic, Partition: o.Partition}
		got.Committed[at], got.Metadata[at], got.Epochs[at] = o.At, o.Metadata, o.LeaderEpoch
	})
	var topics []string
	for _, topic := range svc.Topics {
		topics = append(append(topics, topic), svc.Siblings(topic, s.tiers).Topics()...)
	}
	ends, err := s.adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return got, err
	}
	missing := error(nil)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			missing = o.Err
			return
		}
		got.Ends[trace.TP{Topic: o.Topic, Partition: o.Partition}] = o.Offset
	})
	if missing != nil && len(got.Ends) == 0 {
		return got, missing
	}
	got.Ended = time.Now().UnixNano()
	return got, nil
}

package brokers

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// raiseEpochs gives each partition a leader epoch that is not below the given one. The embedded
// broker forgets epochs when it is killed, and begins with those of the last records, as no Kafka
// does: members would take the records in place of a lost end for those that they had finished.
func (e *embedded) raiseEpochs(to map[trace.TP]int32) error {
	now, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	var missing int32
	for at, epoch := range to {
		if is, ok := now[at]; ok {
			missing = max(missing, epoch-is)
		}
	}
	for ; missing > 0 && err == nil; missing-- {
		err = e.give(order{Op: "shuffle"}) // raises all epochs by one
	}
	return err
}

// leaderEpochs asks the broker for the partitions' leader epochs.
func (e *embedded) leaderEpochs() (now map[trace.TP]int32, err error) {
	cl, err := kgo.NewClient(e.Options(true)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin := kadm.NewClient(cl)
	all, err := admin.Metadata(ctx)
	for ; err != nil || all.Topics.Error() != nil; all, err = admin.Metadata(ctx) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, all.Topics.Error())
		case <-time.After(100 * time.Millisecond): // a fault that answers with errors passes
		}
	}
	now = map[trace.TP]int32{}
	for _, t := range all.Topics {
		for _, p := range t.Partitions {
			now[trace.TP{Topic: p.Topic, Partition: p.Partition}] = p.LeaderEpoch
		}
	}
	return now, nil
}

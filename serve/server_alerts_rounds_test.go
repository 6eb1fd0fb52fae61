package serve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A slow broker makes each round of a server longer than its refresh, and 30 incidents begin. All
// are sent while one round goes on, and noted as sent when it ends.
func TestServer_LongRoundsHoldUpNoNotification(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const topics = 30
		const request = 2 * time.Second // each round has two, or four, and a refresh of a second
		var sources, ledgers []string
		for i := range topics {
			sources = append(sources, fmt.Sprint("a", i))
			ledgers = append(ledgers, fmt.Sprint("a", i, ".dlq.ledger"))
		}
		is := towns(t, k, sources...)
		for _, s := range sources {
			is.lettersOf(s, 12)
		}
		k.Cluster.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if len(r.(*kmsg.ListOffsetsRequest).Topics) >= topics {
				k.Cluster.SleepControl(func() { time.Sleep(request) })
			}
			return nil, nil, false
		})
		cfg := p.config()
		cfg.Refresh = time.Second
		stop := is.serve(cfg)
		defer time.Sleep(request) // the broker has answered all
		defer stop()
		is.within(3*time.Minute, "an incident", func() bool { return is.log.count("an incident of a dead-letter topic") > 0 })
		is.within(2*request, "all are sent", func() bool { return len(p.received("[page]")) == topics })
		time.Sleep(4 * request) // the end of the next round
		cl, err := kgo.NewClient(append(k.Opts(), kgo.ConsumeTopics(ledgers...))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*request)
		defer cancel()
		noted := map[string]bool{}
		for ctx.Err() == nil && len(noted) < topics {
			for _, r := range cl.PollFetches(ctx).Records() {
				if strings.Contains(string(r.Value), `"toldTo":["pager"]`) {
					noted[r.Topic] = true
				}
			}
		}
		if len(noted) != topics {
			t.Errorf("%d of %d are noted as sent", len(noted), topics)
		}
	})
}

package consumer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A broker had no topic ids, or none in fetches, and was upgraded. It then required an id, and
// records that were read before could not be fetched again: their lane tried until another record
// came.
func TestTierFeed_FetchesFromUpgradedBrokers(t *testing.T) {
	type row struct {
		before *kversion.Versions
		byID   bool
	}
	each(t, map[string]row{
		"no ids":            {kversion.V2_7_0(), false},
		"no ids in fetches": {kversion.V3_0_0(), true},
		"ids":               {kversion.V3_1_0(), true},
	}, 1, func(t *testing.T, k *consumertest.Kafka, tt row) {
		var upgraded atomic.Bool
		k.Cluster.ControlKey(kmsg.ApiVersions.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if upgraded.Load() {
				return nil, nil, false
			}
			k.Cluster.KeepControl()
			return versionsOf(tt.before, r), nil, true
		})
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Breaker: noBreaker, RetryBudget: noBudget}
		cfg.MaxParkedBytes = 10_000
		c := k.Run(cfg)
		records := k.Produce(many(500)...)
		eventually(t, "all are parked", func() bool { return waiting(c) == 500 })
		upgraded.Store(true)
		byID := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true,
			When: func(r kmsg.Request) bool {
				again := r.(*kmsg.FetchRequest)
				return again.SessionEpoch == -1 && again.Version > 12
			},
		})
		handledOnce(k, records)
		k.Conserved()
		if got := byID.Hits() > 0; got != tt.byID {
			t.Errorf("asked by the topic's id: %v, want %v", got, tt.byID)
		}
	})
}

// versionsOf returns the API versions of a broker of a version.
func versionsOf(v *kversion.Versions, r kmsg.Request) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.ApiVersionsResponse)
	for key := range int16(100) {
		if highest, ok := v.LookupMaxKeyVersion(key); ok {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MaxVersion = key, highest
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	return resp
}

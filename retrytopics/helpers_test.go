package retrytopics

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/bubble"
)

// kafka is an embedded cluster of three brokers on a network in memory.
type kafka struct {
	*kfake.Cluster
	network kfake.VirtualNetwork
}

func (k *kafka) admin(t *testing.T) *kadm.Client {
	t.Helper()
	adm, err := kadm.NewOptClient(append(bubble.Opts(&k.network), kgo.SeedBrokers(k.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	return adm
}

// onKafka runs f in a bubble where waiting costs nothing.
func onKafka(t *testing.T, f func(*testing.T, *kafka, *kadm.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{}
		var err error
		if k.Cluster, err = bubble.NewCluster(&k.network, kfake.Ports(9092, 9093, 9094)); err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		adm := k.admin(t)
		defer adm.Close()
		f(t, k, adm)
	})
}

func createTopic(t *testing.T, c *kafka, name string, partitions int32, configs map[string]string) {
	t.Helper()
	if err := c.CreateTopic(name, partitions, configs); err != nil {
		t.Fatal(err)
	}
}

func configsOf(t *testing.T, adm *kadm.Client, name string) map[string]string {
	t.Helper()
	topics := map[string]*topic{name: {}}
	if err := describeConfigs(t.Context(), adm, topics, []string{name}); err != nil {
		t.Fatal(err)
	}
	return topics[name].configs
}

func exists(t *testing.T, adm *kadm.Client, names ...string) []string {
	t.Helper()
	topics, err := describe(t.Context(), adm, names)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(topics))
}

// count counts the requests of a kind that reach the cluster.
func count(c *kafka, key kmsg.Key) *int {
	n := new(int)
	c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		*n++
		return nil, nil, false
	})
	return n
}

func mustSiblings(t testing.TB, n Naming, source string, delays ...time.Duration) Siblings {
	t.Helper()
	s, err := n.Siblings(source, "billing", delays...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

package serve_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// silenced makes dead-letter topics of sources, with a letter each. Fetches of them get no answer
// while the returned flag is set.
func (is *station) silenced(sources ...string) *atomic.Bool {
	is.t.Helper()
	cl := is.writer()
	silent, on := map[kadm.TopicID]bool{}, new(atomic.Bool)
	for _, source := range sources {
		for _, topic := range []string{source, source + ".dlq", source + ".dlq.ledger"} {
			is.k.CreateTopic(topic, 1)
		}
		is.lettersOf(source, 1)
		topics, err := kadm.NewClient(cl).ListTopics(is.t.Context(), source+".dlq")
		if err != nil {
			is.t.Fatal(err)
		}
		silent[topics[source+".dlq"].ID] = true
	}
	is.k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		is.k.Cluster.KeepControl()
		for _, of := range r.(*kmsg.FetchRequest).Topics {
			if on.Load() && silent[of.TopicID] {
				return nil, nil, true
			}
		}
		return nil, nil, false
	})
	return on
}

// The brokers of four topics say nothing for hours. The letters of another topic are counted when
// they come.
func TestServer_SilentTopicsHoldUpNoOther(t *testing.T) {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := ofThree(t, k)
		is.silenced("a", "b", "c", "d").Store(true)
		is.serve(serve.Config{})
		is.lettersIn(0, 1)
		time.Sleep(15 * time.Minute)
		for n := range int64(20) {
			is.lettersIn(1, 1)
			time.Sleep(12 * time.Second) // the server looks every ten
			if open := ask[api.Topic](is, "/topics/orders.dlq").Open; open != n+2 {
				t.Fatalf("%d letters are open, want %d", open, n+2)
			}
			time.Sleep(time.Minute)
		}
	})
}

// The brokers of 60 topics that the server knows fall silent, and each of these gets a letter. A
// letter of another topic is counted soon, though its read stands in line behind theirs.
func TestServer_ManyTopicsThatFallSilentHoldUpNoOther(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := ofThree(t, k)
		var sources []string
		for i := range 60 {
			sources = append(sources, fmt.Sprint("s", i))
		}
		silent := is.silenced(sources...)
		is.serve(serve.Config{})
		is.lettersIn(0, 1)
		open := func() int64 { return ask[api.Topic](is, "/topics/orders.dlq").Open }
		time.Sleep(5 * time.Minute)
		if n := open(); n != 1 {
			t.Fatalf("%d letters are open, want 1", n)
		}
		silent.Store(true)
		for _, s := range sources {
			is.lettersOf(s, 1)
		}
		for n := range int64(5) {
			is.lettersIn(1, 1)
			begun := time.Now()
			is.within(4*time.Minute, "the letter is counted", func() bool { return open() == n+2 })
			t.Logf("counted after %v", time.Since(begun))
		}
	})
}

// Fetches of six large topics are slow, and each brings a letter. No more than two topics are read
// at once: each holds an answer of the brokers in memory.
func TestServer_ReadsFewSlowTopicsAtOnce(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters = 12
		sources := []string{"a", "b", "c", "d", "e", "f"}
		is := towns(t, k, sources...)
		admin := kadm.NewClient(is.writer())
		large := map[kadm.TopicID]bool{}
		for _, s := range sources {
			is.lettersOf(s, letters)
			topics, err := admin.ListTopics(t.Context(), s+".dlq")
			if err != nil {
				t.Fatal(err)
			}
			large[topics[s+".dlq"].ID] = true
		}
		var mu sync.Mutex
		begun, most, fetches := map[kadm.TopicID]bool{}, 0, 0
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			for _, of := range r.(*kmsg.FetchRequest).Topics {
				if !large[of.TopicID] || of.Partitions[0].FetchOffset >= letters {
					continue
				}
				of.Partitions[0].PartitionMaxBytes = 1 // one letter
				mu.Lock()
				begun[of.TopicID] = true
				most = max(most, len(begun))
				fetches++
				mu.Unlock()
				k.Cluster.SleepControl(func() { time.Sleep(time.Second) })
				if of.Partitions[0].FetchOffset == letters-1 {
					mu.Lock()
					delete(begun, of.TopicID)
					mu.Unlock()
				}
			}
			return nil, nil, false
		})
		is.serve(serve.Config{})
		is.within(5*time.Minute, "all are counted", func() bool {
			open := int64(0)
			for _, of := range ask[[]api.Topic](is, "/topics") {
				open += of.Open
			}
			return open == letters*int64(len(sources))
		})
		mu.Lock()
		defer mu.Unlock()
		if most != 2 || fetches < letters*len(sources) {
			t.Errorf("%d topics were read at once, want 2, by %d fetches", most, fetches)
		}
	})
}

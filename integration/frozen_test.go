//go:build unix

package integration_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A laptop slept while a run checked that no earlier transaction was open. Its patience had passed
// when it woke, and the run ended with an error about healthy brokers.
func TestFence_AProcessThatWasFrozenInsideTriesAgain(t *testing.T) {
	long(t)
	t.Parallel()
	binary(t)
	s := onEmbedded(t)
	topic := topicName(t)
	s.CreateTopic(topic, 1)
	v := s.deploy(topic, topic, time.Second)
	s.incident(topic, "order", 20)
	v.fixed()
	var once sync.Once
	asked, frozen := make(chan struct{}), make(chan struct{})
	s.Cluster.ControlKey(int16(kmsg.DescribeProducers), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() {
			s.Cluster.SleepControl(func() {
				close(asked)
				<-frozen
			})
		})
		return nil, nil, false
	})
	p := s.begin("run", topic+".dlq", "--yes", "--rate", "500", "--canary", "0", "--ramp", "0", "--window", "1s")
	<-asked
	signal(t, p, syscall.SIGSTOP)
	close(frozen)
	time.Sleep(31 * time.Second) // longer than its patience was, of 30 s by the clock
	signal(t, p, syscall.SIGCONT)
	p.ends(0)
	s.onceEach(topic, topic+".retry.1s", 20)
}

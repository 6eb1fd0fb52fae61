package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Resume looked for three seconds who has the run. Where somebody's open transaction in the ledger held the reading up for
// longer, it took a colleague's run without a word.
func TestResume_AsksWhereTheLedgerIsSlow(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.fix("tax")
	var unasked result
	var name string
	got := s.whileSending(t, "5", func(run string) {
		s.heldUp(t, "orders.dlq.ledger", 6*time.Second)
		name, unasked = run, s.redrive(t, "resume", run, "--by", "ada")
	})
	asks := "run " + name + " is running: the last heartbeat of oncall on "
	if unasked.code != exitRefused || !strings.HasPrefix(unasked.stderr, asks) || !strings.HasSuffix(unasked.stderr, "redrive: yes was not typed, nothing was done: --yes skips the question\n") {
		t.Errorf("resume: %+v", unasked)
	}
	if o := outcomeOf(t, got.stdout); got.code != exitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "oncall on ") {
		t.Errorf("run: %+v", got)
	}
}

// heldUp opens a transaction on all partitions of a topic and aborts it some time later: who reads committed waits.
func (s *service) heldUp(t *testing.T, topic string, during time.Duration) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("somebody"))
	if err != nil {
		t.Error(err)
		return
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Error(err)
	}
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr(); err != nil {
		t.Error(err)
	}
	time.AfterFunc(during, func() {
		defer cl.Close()
		_ = cl.EndTransaction(context.Background(), kgo.TryAbort)
	})
}

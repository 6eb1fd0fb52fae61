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
	done := make(chan struct{})
	i, name := s.as(), ""
	i.heard = func(words string) {
		if id, ok := strings.CutPrefix(words, "run "); ok {
			name, _, _ = strings.Cut(id, ":")
		}
		if strings.HasPrefix(words, "the canary succeeded") {
			go func() {
				defer close(done)
				s.heldUp(t, "orders.dlq.ledger", 6*time.Second)
				unasked = s.redrive(t, "resume", name, "--by", "ada")
			}()
		}
	}
	got := i.run(t, "run", "orders.dlq", "--class", "tax", "--rate", "5", "--ramp", "0", "--window", "2s", "-o", "json")
	<-done
	asks := "run " + name + " goes on: oncall on "
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

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Two operators are called at night, and both start the same run.
func TestOfTwoOperatorsOneRunsAndTheOtherIsToldOfIt(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic, _ := s.repaired(2, 300)
	both := []*process{}
	for _, by := range []string{"ann", "bob"} {
		both = append(both, s.begin("run", topic+".dlq", "--yes", "--by", by, "--rate", "500", "--ramp", "0", "--window", "1s", "-o", "jsonl"))
	}
	winner, loser := both[0], both[1]
	if loser.end() == 0 || winner.end() != 0 {
		winner, loser = loser, winner
	}
	winner.ends(0)
	loser.ends(4)
	runs := s.rows("runs", topic+".dlq")
	if len(runs) != 1 || runs[0].text("state") != "done" || runs[0].number("sent") != 300 {
		t.Fatalf("the runs are %v", runs)
	}
	for _, want := range []string{runs[0].text("run"), runs[0].text("owner")} {
		if !strings.Contains(loser.output(), want) {
			t.Errorf("the loser does not print %q, but\n%s", want, loser.output())
		}
	}
	s.onceEach(topic, topic+".retry.1s", 300)
}

// onceEach checks that a committed reader sees each letter of a topic once on its target.
func (s *site) onceEach(topic, target string, n int) {
	s.t.Helper()
	copies := s.returned(target, kgo.ReadCommitted())
	for from, found := range copies {
		if len(found) != 1 {
			s.t.Errorf("letter %v is on %s %d times", from, target, len(found))
		}
	}
	if len(copies) != n {
		s.t.Errorf("%d letters are on %s, want %d", len(copies), target, n)
	}
}

// A suspended process, as on a sleeping machine, lost its run to another process. When it wakes it
// has an open transaction, and letters to send.
func TestAProcessThatLostItsRunWritesNothingMoreWhenItWakes(t *testing.T) {
	t.Parallel()
	binary(t)
	for _, wakes := range []string{"while the other goes on", "when the other is done"} {
		t.Run(wakes, func(t *testing.T) {
			t.Parallel()
			s := onKafka(t)
			const n = 2000
			topic, _ := s.repaired(1, n)
			dlq, target := topic+".dlq", topic+".retry.1s"
			sleeper := s.begin("run", dlq, "--yes", "--by", "ann", "--rate", "300", "--canary", "0", "--ramp", "0", "--window", "5s")
			if !sleeper.prints("sending\n") {
				t.Fatalf("it does not send, and prints\n%s", sleeper.output())
			}
			// Stopped while the target has records of an open transaction.
			for open := false; !open; {
				time.Sleep(37 * time.Millisecond)
				signal(t, sleeper, syscall.SIGSTOP)
				time.Sleep(50 * time.Millisecond) // its requests are done by then
				if open = s.open(target); !open {
					signal(t, sleeper, syscall.SIGCONT)
				}
			}
			run := s.rows("runs", dlq)[0].text("run")
			other := s.begin("resume", run, "--by", "bob", "--yes")
			if wakes == "when the other is done" {
				other.ends(0)
			} else if !other.prints("sending\n") {
				t.Fatalf("the other does not send, and prints\n%s", other.output())
			}
			owner := s.rows("runs", dlq)[0].text("owner")
			// A broker answers the end of a transaction before it wrote the markers.
			for wakes == "when the other is done" && (s.open(target) || s.open(dlq+".ledger")) {
				time.Sleep(50 * time.Millisecond)
			}
			before := s.ends(target, dlq+".ledger")
			signal(t, sleeper, syscall.SIGCONT)
			sleeper.ends(1)
			if out := sleeper.output(); !strings.Contains(out, "another process owns the run now: "+owner) || !strings.Contains(owner, fmt.Sprint(other.Process.Pid)) {
				t.Errorf("it does not print that %q owns the run, but\n%s", owner, out)
			}
			other.ends(0)
			// A process that the broker fenced reads the ledger before it does anything else. That
			// a broker is slow for ten seconds is not its doing.
			uncertain := regexp.MustCompile(`it is unknown whether the last transaction was committed.*`).FindAllString(other.output(), -1)
			disturbed := slices.ContainsFunc(uncertain, func(line string) bool { return !strings.Contains(line, context.DeadlineExceeded.Error()) })
			if strings.Contains(sleeper.output(), "the broker fenced this process") && disturbed {
				t.Errorf("the other was disturbed, and prints\n%s", other.output())
			}
			s.onlyOf(owner, target, dlq+".ledger", before)
			// Markers are no records. A process that cannot read the ledger soon initialises its
			// ids first, and the brokers may write some.
			for i, topic := range []string{target, dlq + ".ledger"} {
				for _, r := range s.read(topic, kgo.ReadUncommitted()) {
					if wakes == "when the other is done" && r.Offset >= before[i] && !r.Attrs.IsControl() {
						t.Errorf("%s ended at %d, and has %q at %d now", topic, before[i], r.Key, r.Offset)
					}
				}
			}
			s.onceEach(topic, target, n)
			if status := s.rows("status", run)[0]; status.number("sent") != n || status.text("owner") != owner {
				t.Errorf("the status is %v", status)
			}
		})
	}
}

func signal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatalf("%s: %v: %v; it prints\n%s", p, s, err, p.output())
	}
}

// open reports whether a topic holds records of an open transaction.
func (s *site) open(topic string) bool {
	s.t.Helper()
	ends, err := s.admin.ListEndOffsets(s.t.Context(), topic)
	must(s.t, err)
	stable, err := s.admin.ListCommittedOffsets(s.t.Context(), topic)
	must(s.t, err)
	for p, end := range ends[topic] {
		if stable[topic][p].Offset < end.Offset {
			return true
		}
	}
	return false
}

// ends returns the ends of the target and the ledger of a run, of one partition each.
func (s *site) ends(topics ...string) (at []int64) {
	s.t.Helper()
	for _, topic := range topics {
		at = append(at, s.count(topic))
	}
	return at
}

// onlyOf checks that all later records of a target and a ledger come from the process that owns the
// run: no copy has an older epoch of its producer than its predecessors, and each heartbeat names
// the owner.
func (s *site) onlyOf(owner string, target, ledger string, since []int64) {
	s.t.Helper()
	epochs := map[int64]int16{}
	for _, r := range s.read(target, kgo.ReadUncommitted()) {
		if before, ok := epochs[r.ProducerID]; ok && r.Offset >= since[0] && r.ProducerEpoch < before {
			s.t.Errorf("%s/%d was written in epoch %d, behind epoch %d", target, r.Offset, r.ProducerEpoch, before)
		}
		epochs[r.ProducerID] = max(epochs[r.ProducerID], r.ProducerEpoch)
	}
	for _, r := range s.read(ledger, kgo.ReadUncommitted()) {
		if r.Offset < since[1] || !strings.HasPrefix(string(r.Key), "run/") || r.Value == nil {
			continue
		}
		if !strings.Contains(string(r.Value), owner) {
			s.t.Errorf("%s/%d is not of %q: %s", ledger, r.Offset, owner, r.Value)
		}
	}
}

// A laptop slept while a run checked that no earlier transaction was open. Its patience had passed
// when it woke, and the run ended with an error about healthy brokers.
func TestFence_AProcessThatWasFrozenInsideTriesAgain(t *testing.T) {
	long(t)
	t.Parallel()
	binary(t)
	s := onEmbedded(t)
	topic, _ := s.repaired(1, 20)
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

package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// The fix works for the first letters only. All times are the broker's: a sibling's records and the
// markers of transactions have the time of their writing.
//
// A second is that of a process that gets the CPU it asks for. On a busy machine the run falls
// behind with all it does alike. There a second is what it does in one: six transactions of 150 ms
// each.
func TestNothingBecomesVisibleASecondAfterARecordFailedAgain(t *testing.T) {
	t.Parallel()
	binary(t)
	for _, c := range []struct {
		rate, letters, good int // a slow service has to run the good ones while letters are sent
	}{{50, 400, 60}, {5000, 30_000, 1000}} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			t.Parallel()
			s := onKafka(t)
			// An abort may come when no transaction is open.
			for range 5 {
				if open := s.abortedRun(c.rate, c.letters, c.good); open > 0 || c.rate < 1000 || t.Failed() {
					return
				}
			}
			t.Error("there was never a letter in an open transaction")
		})
	}
}

// abortedRun has a run of letters abort, since the fix works for the good ones only. It returns how
// many letters were written and did not become visible.
func (s *site) abortedRun(rate, letters, good int) (open int) {
	t := s.t
	t.Helper()
	topic := topicName(t)
	s.CreateTopic(topic, 4)
	v := s.deploy(topic, topic, time.Second, time.Hour)
	s.incident(topic, "order", letters)
	var ran atomic.Int64
	v.deploys(func(string, consumer.Delivery) error {
		if ran.Add(1) > int64(good) {
			return busy("tax") // to the next retry topic, not to the dead letters
		}
		return nil
	})
	p := s.begin("run", topic+".dlq", "--yes", "--rate", fmt.Sprint(rate), "--ramp", "0", "--max-lag", "-1", "-o", "json").ends(3)
	status := s.rows("status", s.rows("runs", topic+".dlq")[0].text("run"))[0]
	if status.text("state") != "aborted" || !strings.Contains(status.text("cause"), "failed again with tax") {
		t.Errorf("the status is %v", status)
	}

	failed := first(s.read(topic+".retry.1h", kgo.ReadCommitted()))
	target := topic + ".retry.1s"
	var last time.Time
	commits := map[int32]int{} // that came later, by partition
	// With the markers that make them visible.
	for _, r := range s.read(target, kgo.ReadCommitted()) {
		commit := r.Attrs.IsControl() && committing(r)
		if r.Timestamp.After(last) && (commit || !r.Attrs.IsControl()) {
			last = r.Timestamp
		}
		if commit && r.Timestamp.After(failed) {
			commits[r.Partition]++
		}
	}
	took, most := last.Sub(failed), 0
	for _, n := range commits {
		most = max(most, n)
	}
	t.Logf("at %d/s the last record became visible %v after the first copy of one that failed again, in %d transactions", rate, took, most)
	if failed.IsZero() || took > time.Second && most > 6 || took > 30*time.Second {
		t.Errorf("a record failed again at %v, and at %v another one became visible: %v later, after %d transactions", failed, last, took, most)
	}

	// The ledger has entries for exactly the visible copies, and for none of the open
	// transaction.
	visible, all := s.returned(target, kgo.ReadCommitted()), s.returned(target, kgo.ReadUncommitted())
	entries := s.entries(topic + ".dlq")
	for from, found := range visible {
		if e := entries[from]; len(found) != 1 || e.State == "" {
			t.Fatalf("letter %v is visible %d times, and the ledger says %+v", from, len(found), e)
		}
	}
	if len(entries) != len(visible) || status.number("sent") != int64(len(visible)) {
		t.Errorf("%d letters are visible on the target, and the ledger knows of %d, and the status is %v", len(visible), len(entries), status)
	}
	if len(visible) >= letters {
		t.Errorf("all %d letters were sent before it aborted; it prints\n%s", letters, p.output())
	}
	return len(all) - len(visible)
}

// first returns when the first redriven record was written that failed.
func first(records []*kgo.Record) (at time.Time) {
	for _, r := range records {
		if _, ok := redriven(r); ok && (at.IsZero() || r.Timestamp.Before(at)) {
			at = r.Timestamp
		}
	}
	return at
}

// committing reports whether a control record commits a transaction: its key is a version and a
// type, of two bytes each.
func committing(r *kgo.Record) bool { return slices.Equal(r.Key, []byte{0, 0, 0, 1}) }

// Failures for other reasons, beside a run, do not end it.
func TestARunGoesOnWhileOthersFail(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 2)
	v := s.deploy(topic, topic, time.Second, 2*time.Second, 3*time.Second, time.Hour)
	audit := s.deploy(topic, topic+"-audit", time.Second, 2*time.Second, 3*time.Second, time.Hour)
	audit.fixed()
	s.incident(topic, "order", 500)
	audit.failing("tax") // for new records
	v.deploys(func(value string, f consumer.Delivery) error {
		switch what, _, _ := strings.Cut(value, " "); what {
		case "old": // failed first before the run
			return busy("tax")
		case "other":
			return bug("sku")
		case "otherbusy":
			return busy("sku")
		}
		return nil
	})
	produce := func(what string, n int) {
		var records []*kgo.Record
		for i := range n {
			records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, "%s %d", what, i)})
		}
		s.Produce(records...)
	}
	produce("old", 20)
	s.await("copies of what failed before the run", func() bool { return s.count(topic+".retry.1s") >= 20 })

	p := s.begin("run", topic+".dlq", "--group", topic, "--rate", "100", "--ramp", "0", "--window", "10s")
	if !p.prints("sending\n") {
		t.Fatalf("it does not send, and prints\n%s", p.output())
	}
	produce("other", 3)
	produce("otherbusy", 3)
	produce("fresh", 3) // the other group fails these with the run's class
	s.hold(topic, 5)
	p.ends(0)

	if status := s.rows("status", s.rows("runs", topic+".dlq")[0].text("run"))[0]; status.text("state") != "done" || status.number("succeeded") != 500 {
		t.Errorf("the status is %v", status)
	}
	// All of these failed while the run was active.
	deepest := s.read(topic+".retry.1h", kgo.ReadCommitted())
	if n := of(deepest, topic, "old", "tax"); n < 20 {
		t.Errorf("%d of the old records hopped to the last retry topic, want 20", n)
	}
	letters := s.read(topic+".dlq", kgo.ReadCommitted())
	if n := of(letters, topic, "other", "sku"); n != 3 {
		t.Errorf("%d letters are of another class, want 3", n)
	}
	if n := of(letters, topic+"-audit", "fresh", "tax"); n != 3 {
		t.Errorf("%d letters are of another group, want 3", n)
	}
}

// of counts copies of a group's failures with a class, for records whose values begin with a word.
func of(records []*kgo.Record, group, word, class string) (n int) {
	for _, r := range records {
		if m, err := headers.Parse(r.Headers); err == nil && m.Group == group && m.Class == class && strings.HasPrefix(string(r.Value), word+" ") {
			n++
		}
	}
	return n
}

// hold writes followers into the first retry topic of a group named like the topic. They wait
// behind the head of their key and carry its class: half have not run, and half ran before they had
// to wait.
func (s *site) hold(topic string, n int) {
	s.t.Helper()
	var records []*kgo.Record
	for i := range n {
		m := headers.Meta{
			Original: headers.Position{Topic: topic, Partition: 1, Offset: 1_000_000 + int64(i), Timestamp: time.Now()}, Group: topic, Held: true, Hops: 1,
			Attempts: i % 2, Class: "tax", Message: "cannot go on", NotBefore: time.Now(), FirstFailedAt: time.Now(), FailedAt: time.Now(),
		}
		records = append(records, &kgo.Record{Topic: topic + ".retry.1s", Partition: 1, Value: []byte("held"), Headers: m.Append(nil)})
	}
	s.Produce(records...)
}

// A run ended without an abort although all letters after its canary failed with another class.
func TestRun_AbortsWhenAShareOfAnyClassFails(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 1)
	v := s.deploy(topic, topic, time.Second)
	const n = 400
	s.incident(topic, "order", n)
	v.deploys(func(value string, _ consumer.Delivery) error {
		if value == "order 0" { // the canary
			return nil
		}
		return bug("sku")
	})
	p := s.begin("run", topic+".dlq", "--yes", "--rate", "20", "--ramp", "0", "--window", "1s").ends(3)
	status := s.rows("status", s.rows("runs", topic+".dlq")[0].text("run"))[0]
	// On a busy machine the letters of a second fail together, and look like new traffic first.
	cause := status.text("cause")
	alarmed := strings.Contains(cause, "failed again, of any class, where 10% of ") || strings.Contains(cause, "fills faster than it is drained")
	if sent := status.number("sent"); status.text("state") != "aborted" || !alarmed || sent > n/2 {
		t.Errorf("the status is %v, want that it was aborted before half of it was sent; it prints\n%s", status, p.output())
	}
}

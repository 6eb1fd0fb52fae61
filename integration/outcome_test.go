package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Billing and audit share a source and its siblings. Reports adds a retry topic of its own later.
func TestOnlyTheGroupThatFailedRunsWhatIsBroughtBack(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	const n = 100
	tiers := map[string]time.Duration{"billing": time.Second, "audit": time.Second, "reports": 2 * time.Second}
	services := map[string]*service{}
	for name, tier := range tiers {
		services[name] = s.deploy(topic, topic+"-"+name, tier)
	}
	s.incident(topic, "order", n)
	s.await("letters of all groups", func() bool { return s.count(topic+".dlq") == 3*n })
	for _, v := range services {
		v.fixed()
	}

	sent := map[string]int{}
	for i, name := range []string{"billing", "reports", "audit"} {
		p := s.begin("run", topic+".dlq", "--group", topic+"-"+name, "--rate", "0", "--ramp", "0", "--window", "5s", "-o", "json").ends(0)
		runs := s.rows("runs", topic+".dlq")
		if status := s.rows("status", runs[i].text("run"))[0]; len(runs) != i+1 || status.number("succeeded") != n {
			t.Errorf("of %s the status is %v, and it prints\n%s", name, status, p.output())
		}
		target := topic + ".retry." + tiers[name].String()
		sent[target] += n
		s.onceEach(topic, target, sent[target])
		for other, v := range services {
			want := 0
			if name == other {
				want = n
			}
			if ran := v.results(); len(ran) != want {
				t.Errorf("%s ran %d letters redriven to %s, want %d", other, len(ran), name, want)
			}
			v.forget()
		}
	}
}

// After an incident an operator asks for the outcome of each order.
func TestARunsOutcomeIsWhatTheServicesJournalSays(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	v := s.deploy(topic, topic, time.Second, 2*time.Second)
	const n, others = 400, 20
	s.incident(topic, "order", n)
	v.failing("zip")
	s.incident(topic, "parcel", others)
	v.deploys(func(value string, f consumer.Delivery) error {
		switch {
		case strings.HasSuffix(value, "1"):
			return bug("sku")
		case strings.HasSuffix(value, "2"):
			return classify.Discard(errors.New("out of date"))
		case strings.HasSuffix(value, "3") && f.Attempt == 1:
			return busy("gateway")
		}
		return nil
	})
	s.begin("run", topic+".dlq", "--class", "tax", "--rate", "500", "--canary", "0", "--ramp", "0", "--window", "30s", "--tolerate", "100%").ends(3)
	run := s.rows("runs", topic+".dlq")[0].text("run")
	var status row
	s.await("outcome of all letters", func() bool {
		status = s.rows("status", run)[0]
		return status.number("pending") == 0
	})

	// The service's view: the result of its last attempt at each record.
	journal, counts := map[string]string{}, map[string]int{}
	for value, runs := range v.results() {
		if last := runs[len(runs)-1]; len(runs) == 1 || len(runs) == 2 && runs[0] == "retry" {
			journal[value] = map[string]string{"succeeded": "succeeded", "terminal": "failed", "discard": "discarded"}[last]
			counts[journal[value]]++
		} else {
			t.Errorf("%s ran so: %v", value, runs)
		}
	}
	want := map[string]int{"succeeded": n / 10 * 8, "failed": n / 10, "discarded": n / 10}
	if !maps.Equal(counts, want) {
		t.Fatalf("the journal has %v, want %v", counts, want)
	}
	for state, n := range map[string]int{"selected": n, "sent": n, "succeeded": counts["succeeded"], "failed": counts["failed"], "discarded": counts["discarded"]} {
		if status.number(state) != int64(n) {
			t.Errorf("the status tells of %d %s, and the journal of %d", status.number(state), state, n)
		}
	}
	if c, _ := status["failedByClass"].(map[string]any); len(c) != 1 || row(c).number("sku") != int64(counts["failed"]) {
		t.Errorf("the status tells of failures by class: %v", status["failedByClass"])
	}

	// The ledger's view, letter by letter; it has no entry for letters that were not selected.
	values := map[headers.Position]string{}
	entries := s.entries(topic + ".dlq")
	for _, r := range s.read(topic+".dlq", kgo.ReadCommitted()) {
		at, value := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, string(r.Value)
		values[at] = value
		e, known := entries[at]
		again, _ := redriven(r)
		switch {
		case strings.HasPrefix(value, "parcel"), again.Redrive.ID != "":
			if known {
				t.Errorf("letter %v, %s, was not redriven, and its entry is %+v", at, value, e)
			}
		case string(e.State) != journal[value], e.State == dlq.Failed && e.Class != "sku":
			t.Errorf("letter %v, %s: the journal says %s, and the ledger %+v", at, value, journal[value], e)
		}
	}

	// The operator's view.
	place := func(r row) headers.Position {
		return headers.Position{Topic: topic + ".dlq", Partition: int32(r.number("partition")), Offset: r.number("offset")}
	}
	all, open := map[headers.Position]string{}, map[string]int{}
	for _, r := range s.rows("list", topic+".dlq", "--all", "--limit", "0") {
		all[place(r)] = values[place(r)]
	}
	if !maps.Equal(all, values) || len(all) != n+others+counts["failed"] {
		t.Errorf("list --all shows %d letters, and there are %d", len(all), len(values))
	}
	for _, r := range s.rows("list", topic+".dlq", "--limit", "0") {
		word, _, _ := strings.Cut(values[place(r)], " ")
		open[r.text("class")+" "+word]++
		if word == "order" && journal[values[place(r)]] != "failed" {
			t.Errorf("list shows %s as open, and the journal says %s", values[place(r)], journal[values[place(r)]])
		}
	}
	if want := map[string]int{"sku order": counts["failed"], "zip parcel": others}; !maps.Equal(open, want) {
		t.Errorf("list shows %v as open, want %v", open, want)
	}
	shown := map[string]bool{}
	for at, value := range values {
		if state := journal[value]; !shown[state] && entries[at].State != "" {
			shown[state] = true
			letter := s.rows("show", topic+".dlq", fmt.Sprintf("%d:%d", at.Partition, at.Offset))[0]
			if letter.text("state") != state || letter.text("value") != value {
				t.Errorf("show tells of letter %v, %s, which the journal calls %s: %v", at, value, state, letter)
			}
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(shown)), []string{"discarded", "failed", "succeeded"}) {
		t.Errorf("letters were shown of %v", shown)
	}
	if sum := s.rows("summary", topic+".dlq", "--class", "tax")[0]; sum.number("open") != 0 || sum.number("resolved") != n {
		t.Errorf("the summary of the class is %v", sum)
	}
	if sum := s.rows("summary", topic+".dlq")[0]; sum.number("open") != int64(others+counts["failed"]) {
		t.Errorf("the summary is %v", sum)
	}
}

package serve_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// series returns the series of a metric that a server shows, by the class.
func series(t *testing.T, s *serve.Server, metric string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, m := range regexp.MustCompile(`(?m)^`+metric+`\{error_type="([^"]*)".*\} (\S+)$`).FindAllStringSubmatch(get(t, s, "/metrics"), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		all[m[1]] = int64(n)
	}
	return all
}

func total(series map[string]int64) (n int64) {
	for _, of := range series {
		n += of
	}
	return n
}

// However many classes a topic has, MaxClasses have series of their own and the others one. A class
// keeps its series although others outgrow it: a number that moved between two would seem to grow
// in one of them.
func TestServer_MetricsFoldClasses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{MaxClasses: 4})
	c.fail("orders", "c2", 9)
	c.fail("orders", "c3", 8)
	c.fail("orders", "c0", 7)
	c.fail("orders", "c1", 6)
	metrics := []string{"siding_dead_letters_open", "siding_dead_letters_recent", "siding_dead_letters_written_total"}
	has := func(n int64, of ...string) func() bool {
		return func() bool {
			for _, m := range of {
				if total(series(t, s, m)) != n {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "30 letters are counted", has(30, metrics[:2]...))
	for n := range 20 {
		c.fail("orders", fmt.Sprint("later", n), 10)
	}
	eventually(t, "230 letters are counted", has(230, metrics[:2]...))
	for _, m := range append(metrics, "siding_dead_letters_first_written_seconds") {
		all := series(t, s, m)
		if len(all) != 5 {
			t.Errorf("%s has %d series, want 4 classes and _OTHER", m, len(all))
		}
		for class := range all {
			if strings.HasPrefix(class, "later") {
				t.Errorf("%s has a series of class %q", m, class)
			}
		}
	}
	if open := series(t, s, metrics[0]); open["_OTHER"] != 200 || open["c1"] != 6 {
		t.Errorf("the open letters are %v", open)
	}
}

// prune discards all letters of a source, and deletes them.
func (c *cluster) prune(source string) {
	c.T.Helper()
	l := dlq.NewLedger(source+".dlq", source+".dlq.ledger", c.Opts...)
	if _, err := l.Discard(c.T.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		c.T.Fatal(err)
	}
	l = dlq.NewLedger(source+".dlq", source+".dlq.ledger", c.Opts...)
	p, err := l.Prunable(c.T.Context(), time.Time{}, nil)
	if err == nil {
		err = l.Prune(c.T.Context(), p, dlq.PruneOptions{By: "test"})
	}
	if err != nil {
		c.T.Fatal(err)
	}
}

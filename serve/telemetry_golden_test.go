package serve_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
)

// The names of the metrics are a promise to dashboards and alerts.
func TestServer_MetricsHaveTheNamesOfTheGoldenFile(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	c := newCluster(t, "orders")
	var broken atomic.Bool
	var done atomic.Int64
	broken.Store(true)
	c.service(&broken, &done)
	eventually(t, "the service has committed", func() bool {
		group := c.fake.GroupInfo("billing")
		return group != nil && len(group.Commits["orders"]) == 3
	})
	s, _ := c.run(serve.Config{Topics: []serve.Topic{{Match: "*", Retention: &serve.Retention{}}}, Notify: notifies(newPager(t)).Notify, RulesFile: rules(t, "rules: [{name: outage, topics: '*', classes: [timeout]}]")})
	c.Client.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}, nil)
	shows(t, s, `siding_dead_letters_open{error_type="http.503",messaging_destination_name="orders.dlq"} 1`)
	broken.Store(false)
	c.redrive("orders.dlq")
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
	shows(t, s, `siding_redrive_success_ratio{messaging_destination_name="orders.dlq"} 1`)
	shows(t, s, `siding_dead_letters_held{messaging_destination_name="orders.dlq"} 0`)
	shows(t, s, `siding_notifications_given_up_total{messaging_destination_name="orders.dlq",siding_receiver_name="a"} 0`)
	shows(t, s, `siding_group_members{messaging_consumer_group_name="billing",messaging_destination_name="orders.dlq"} 1`)
	var lines []string
	for line := range strings.Lines(get(t, s, "/metrics")) {
		if strings.HasPrefix(line, "# ") && strings.Contains(line, " siding_") {
			lines = append(lines, line)
		} else if strings.HasPrefix(line, "siding_") {
			lines = append(lines, regexp.MustCompile(`\} .*`).ReplaceAllString(line, "}"))
		}
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "")
	const file = "testdata/metrics.golden"
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		err = os.WriteFile(file, []byte(got), 0o644)
		want = []byte(got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("/metrics has\n%s\n%s has\n%s", got, file, want)
	}
}

// family is a metric as a page or a golden file has it: kind and labels.
type family struct {
	kind   string
	labels string // sorted
}

// The page's table has each metric of the golden file, with its kind and its attributes, and no
// other.
func TestServer_ThePageHasTheMetricsOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]family{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		labels := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^`+m[1]+`\{(.*)\}$`).FindAllStringSubmatch(string(text), -1) {
			for _, key := range regexp.MustCompile(`([a-z_]+)=`).FindAllStringSubmatch(line[1], -1) {
				labels[key[1]] = true
			}
		}
		delete(labels, "messaging_destination_name")
		want[m[1]] = family{m[2], strings.Join(slices.Sorted(maps.Keys(labels)), " ")}
	}
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]family{}
	// What they are in Prometheus.
	kinds := map[string]string{"sum": "gauge", "gauge": "gauge", "counter": "counter"}
	row := regexp.MustCompile("(?m)^\\| `(siding\\.[a-z_.]+)` \\| (sum|gauge|counter), [^|]+ \\| `([a-z_]+)` \\| [^|]+ \\|([^|]*)\\|$")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, key := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(m[4], -1) {
			labels = append(labels, strings.ReplaceAll(key[1], ".", "_"))
		}
		slices.Sort(labels)
		got[m[3]] = family{kinds[m[2]], strings.Join(labels, " ")}
		if !strings.HasPrefix(m[3], strings.ReplaceAll(m[1], ".", "_")) {
			t.Errorf("%s is %s in Prometheus?", m[1], m[3])
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/serve.md has\n%v\nand the golden file\n%v", got, want)
	}
}

package serve_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
)

// The names of the metrics are a promise to dashboards and alerts.
func TestServer_MetricsHaveTheNamesOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
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

package monitoring_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// Each metric and label of the alerts is in a golden file, and their texts name labels that their
// results have.
func TestAlerts_NameWhatExists(t *testing.T) {
	t.Parallel()
	s := golden(t)
	for _, a := range alerts(t).All() {
		of, err := s.Check(a.Expr)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		if a.Labels["severity"] != "warning" && a.Labels["severity"] != "critical" {
			t.Errorf("%s has severity %q", a.Name, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", a.Name)
		}
		for key, text := range a.Annotations {
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if !of[m[1]] {
					t.Errorf("%s: %s names the label %s, the result has %v", a.Name, key, m[1], of)
				}
			}
		}
	}
}

// pages have the sections that alerts lead to.
const pages = "https://github.com/sidingkafka/siding/blob/main/docs/"

// Of the 13 rows of the page of consumers, one was an alert. Each alert leads to its row now, and
// each row that is about siding's metrics has one.
func TestAlerts_LeadToTheirRows(t *testing.T) {
	t.Parallel()
	text := map[string]string{}
	names := map[string]bool{}
	for _, page := range []string{"serve.md", "telemetry.md"} {
		read, err := os.ReadFile(root + "/docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text[page] = string(read)
		for _, m := range regexp.MustCompile("`(Siding[A-Za-z]+)`").FindAllStringSubmatch(text[page], -1) {
			names[m[1]] = true
		}
	}
	for _, a := range alerts(t).All() {
		page, anchor, _ := strings.Cut(strings.TrimPrefix(a.Annotations["runbook_url"], pages), "#")
		if row := "<a id=\"" + anchor + "\"></a>`" + a.Name + "`"; strings.Count(text[page], row) != 1 {
			t.Errorf("%s has the runbook %q, whose page has %q %d times", a.Name, a.Annotations["runbook_url"], row, strings.Count(text[page], row))
		}
		delete(names, a.Name)
	}
	if len(names) > 0 {
		t.Errorf("the pages have %v, which are no alerts", names)
	}
	_, rows, _ := strings.Cut(text["telemetry.md"], "\n## Alerts\n")
	rows, _, _ = strings.Cut(rows, "\n\nThe names")
	n := 0
	for row := range strings.SplitSeq(rows, "\n") {
		if strings.HasPrefix(row, "| `siding.") {
			if n++; !strings.Contains(row, "`Siding") {
				t.Errorf("no alert is of the row %s", row)
			}
		}
	}
	if n != 16 {
		t.Errorf("%d rows are about siding's metrics, want 16", n)
	}
}

// An outage with twenty classes is one alert of its topic, not twenty. A topic that pages does not
// warn besides.
func TestAlerts_AreOneForATopic(t *testing.T) {
	t.Parallel()
	s := golden(t)
	exprs := map[string]string{}
	for _, a := range alerts(t).All() {
		exprs[a.Name] = a.Expr
		of, err := s.Check(a.Expr)
		if err != nil || of["error_type"] || !of["messaging_destination_name"] && !of["messaging_consumer_group_name"] {
			t.Errorf("%s is one for each of %v, %v", a.Name, of, err)
		}
	}
	for _, name := range []string{"SidingLagGrows", "SidingStrained"} {
		if warn, page := exprs[name], exprs["SidingHeld"]; !strings.HasSuffix(warn, " unless on (messaging_consumer_group_name, messaging_destination_name) ("+page+")") {
			t.Errorf("the warning is %s, the page %s", warn, page)
		}
	}
	if warn, page := exprs["SidingDeadLettersWarn"], exprs["SidingDeadLettersPage"]; !strings.HasSuffix(warn, " unless on (messaging_destination_name) ("+page+")") {
		t.Errorf("the warning is %s, the page %s", warn, page)
	}
}

// Promtool runs the cases of alerts_test.yaml.
func TestAlerts_PassPromtool(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertsTest}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Each alert has a case in which it fires, and a later one of the same series in which it does not.
func TestAlerts_EachIsSeenToFireAndToResolve(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(alertsTest)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Cases []struct {
				At     time.Duration `yaml:"eval_time"`
				Alert  string        `yaml:"alertname"`
				Alerts []any         `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	resolves := map[string]bool{}
	for _, test := range file.Tests {
		fires := map[string]time.Duration{}
		for _, c := range test.Cases {
			at, fired := fires[c.Alert]
			switch {
			case len(c.Alerts) > 0:
				fires[c.Alert] = c.At
			case fired && c.At > at:
				resolves[c.Alert] = true
			}
		}
	}
	for _, a := range alerts(t).All() {
		if !resolves[a.Name] {
			t.Errorf("no case of alerts_test.yaml sees %s fire and resolve", a.Name)
		}
	}
}

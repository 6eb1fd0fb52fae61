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

// The page has a row for each alert.
func TestAlerts_AreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	on := regexp.MustCompile("`(Siding[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1)
	names := map[string]bool{}
	for _, m := range on {
		names[m[1]] = true
	}
	for _, a := range alerts(t).All() {
		if !names[a.Name] {
			t.Errorf("docs/serve.md lacks %s", a.Name)
		}
		delete(names, a.Name)
	}
	if len(names) > 0 {
		t.Errorf("docs/serve.md has %v, which are no alerts", names)
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

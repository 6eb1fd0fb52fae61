package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
)

func load(t *testing.T, text string) (serve.Config, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return serve.Load(name)
}

// Each error names the line, and all are told at once.
func TestLoad_NamesTheLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want []string
	}{
		{"listen: 0.0.0.0:8080\nrefresh: 10ms\n", []string{"serve.yaml:1: listen: \"0.0.0.0:8080\" is not a loopback address", "serve.yaml:2: refresh: 10ms: at least 500ms"}},
		{"topics:\n  - match: a*\n    criticality: high\n  - match: '['\n    criticality: vital\n", []string{"serve.yaml:4: topics[1].match: \"[\" is not a pattern", "serve.yaml:5: topics[1].criticality: \"vital\": critical, high"}},
		{"topics:\n  - criticality: high\n", []string{"serve.yaml:2: topics[0].match: \"\" is not a pattern"}},
		{"topics:\n  - match: a\n    alerts:\n      warn-open: 10\n      page-open: 5\n", []string{"serve.yaml:5: topics[0].alerts.page-open: 5 is below warn-open, 10"}},
		{"notify:\n  - name: chat\n", []string{"serve.yaml:2: notify[0].url-env: either this or url-file is required"}},
		{"listn: x\n", []string{"serve.yaml:1: unknown field \"listn\""}},
		{"refresh: soon\n", []string{`serve.yaml:1: "soon" is not a duration: as in 90s`}},
		{"topics:\n  - match: a\n    alerts:\n      oldest: \"1y\"\n", []string{`serve.yaml:4: "1y" is not a duration`}},
		{"refresh: [1\n", []string{"serve.yaml:1: "}},
		{"max-classes: -1\n", []string{"serve.yaml:1: max-classes: -1: at least 1"}},
	} {
		_, err := load(t, test.text)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", test.text, err, want)
			}
		}
	}
	if cfg, err := load(t, "refresh: 3s\ntopics: [{match: a, alerts: {oldest: 90m}}]\n"); err != nil || cfg.Refresh.String() != "3s" || cfg.Topics[0].Alerts.Oldest.String() != "1h30m0s" {
		t.Errorf("%+v, %v", cfg, err)
	}
}

package serve

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// A configuration is refused with the file and the line, and never crashes the program.
func FuzzConfig_RefusesWithTheLine(f *testing.F) {
	for _, text := range []string{"", "listen: x", "topics: [{match: '*', criticality: critical, manual-only: false, retention: {max-age: 1d}}]", "redact: {patterns: ['(']}", "notify: [{name: a}]", "access: {proxy: {from: [x]}}", "refresh: 1ns", "url: ':'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var cfg Config
		file, err := yamlfile.Decode("serve.yaml", []byte(text), &cfg)
		if err == nil {
			if err = check(cfg.withDefaults()); err != nil {
				err = file.At(err)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "serve.yaml") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func check(c Config) error { return c.check() }

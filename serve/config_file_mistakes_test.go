package serve

import (
	"strings"
	"testing"
)

// Misspelled keys, values of the wrong kind, values out of bounds and files that are wrong are
// reported at once, each with its line. What follows from one of them is not reported: listen may
// be right once access is, and what is missing beside a misspelled key may be that one.
func TestLoad_TellsMistakesOfEveryKindAtOnce(t *testing.T) {
	t.Parallel()
	files := map[string]string{"serve.yaml": `listn: x
listen: 0.0.0.0:8642
url: siding
refresh: 10ms
rules-file: rules.yaml
access:
  tokenfile: tokens.yaml
topics:
  - {match: '[', criticalty: high}
  - {macth: a, criticality: vital}
  - match: a
    alerts: {warn-open: few, page-open: 5}
    retention: {max-age: -1s, max-count: many, every: 1ms}
  - a
notify:
  - {name: chat, url: 'slack://hunter2'}
  - {name: mail, url-env: SIDING_TEST_NOT_SET}
`, "rules.yaml": `rules:
  - {name: a, topics: a, classes: [b], wait: soon, max-wait: 1m, zone: Mars}
  - {topics: '[', clases: [b]}
`}
	want := []string{
		"serve.yaml:1: listn: there is no such key; did you mean listen?",
		`serve.yaml:3: url: "siding" is not an address, as in https://siding.example.com`,
		"serve.yaml:4: refresh: 10ms: at least 500ms",
		"serve.yaml:7: access.tokenfile: there is no such key; did you mean tokens-file?",
		"serve.yaml:9: topics[0].criticalty: there is no such key; did you mean criticality?",
		`serve.yaml:9: topics[0].match: "[" ` + aPattern,
		"serve.yaml:10: topics[1].macth: there is no such key; did you mean match?",
		`serve.yaml:10: topics[1].criticality: "vital": critical, high, normal, low or minor`,
		`serve.yaml:12: topics[2].alerts.warn-open: "few" is not a whole number`,
		`serve.yaml:13: topics[2].retention.max-count: "many" is not a whole number`,
		"serve.yaml:13: topics[2].retention.every: 1ms: at least 1s",
		"serve.yaml:14: topics[3]: it is a single value, but keys with values are expected: match, criticality, manual-only, alerts, retention",
		"serve.yaml:16: notify[0].url: there is no such key; allowed are name, url-env, url-file, topics, severity",
		"serve.yaml:17: notify[1].url-env: the variable SIDING_TEST_NOT_SET is not set: it has the receiver's URL",
		`rules.yaml:2: rules[0].wait: "soon" is not a duration: as in 90s, 5m, 4h, 180d`,
		`rules.yaml:2: rules[0].zone: "Mars" is no time zone: as in Europe/Berlin`,
		"rules.yaml:3: rules[1].clases: there is no such key; did you mean classes?",
		`rules.yaml:3: rules[1].topics: "[" ` + aPattern,
	}
	if got, want := mistakes(write(t, files)), strings.Join(want, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

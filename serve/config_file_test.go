package serve

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// write writes files, and returns their folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mistakes loads serve.yaml of a folder, and returns what the error says, without the folder's
// name.
func mistakes(dir string) string {
	_, err := Load(filepath.Join(dir, "serve.yaml"))
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
}

// aToken is a hash of a token.
var aToken = fmt.Sprintf("%x", sha256.Sum256([]byte("a")))

const aPattern = "is not a pattern: * is any text, ? any character, [abc] one of these"

const isEmpty = "it is empty, perhaps because a variable is not set: give a value, or leave it out"

// aTopics is the same of a grant's topics.
const aTopics = aPattern + "; no topic has spaces or commas"

// wrongFiles are configurations with mistakes, and all that is said about each.
var wrongFiles = []struct {
	about string
	files map[string]string
	want  []string // lines
}{
	{"each key has a value of the wrong kind", map[string]string{"serve.yaml": `listen: [a]
url: {a: b}
group: [a]
refresh: [2s]
topics:
  - match: [a]
    criticality: [high]
    manual-only: often
    alerts:
      warn-open: many
      page-open: 1.5
      new: [1]
      oldest: 1y
      new-class: soon
      retention: 2
      held: soon
      blocked: [1]
      gone: 5
    retention:
      max-age: soon
      max-count: 1.5
      open: 1
      archive: [a]
      every: [1h]
s3:
  endpoint: [a]
  region: {a: b}
max-classes: x
redact:
  paths: a.b
  headers: a
  patterns: {a: b}
rules-file: [a]
access:
  tokens-file: [a]
  proxy:
    header: [a]
    groups-header: [a]
    from: 10.0.0.1
    groups:
      a: [{role: [viewer], topics: a}]
  oidc:
    issuer: [a]
    client-id: [a]
    client-secret-env: [a]
    client-secret-file: [a]
    scopes: openid
    name-claim: [a]
    groups-claim: [a]
    groups:
      a: [{role: king, topics: a}]
  session-key-file: [a]
  open-metrics: yes
tls:
  cert-file: [a]
  key-file: [a]
notify:
  - name: [a]
    url-env: [a]
    url-file: [a]
    topics: [a]
    severity: [page]
`}, []string{
		"serve.yaml:1: listen: it is a list, but a text is expected",
		"serve.yaml:2: url: it has keys, but a text is expected",
		"serve.yaml:3: group: it is a list, but a text is expected",
		"serve.yaml:4: refresh: it is a list, but a duration is expected: as in 90s, 5m, 4h, 180d",
		"serve.yaml:6: topics[0].match: it is a list, but a text is expected",
		"serve.yaml:7: topics[0].criticality: it is a list, but a text is expected",
		`serve.yaml:8: topics[0].manual-only: "often" is not true or false`,
		`serve.yaml:10: topics[0].alerts.warn-open: "many" is not a whole number`,
		`serve.yaml:11: topics[0].alerts.page-open: "1.5" is not a whole number`,
		"serve.yaml:12: topics[0].alerts.new: it is a list, but a whole number is expected",
		`serve.yaml:13: topics[0].alerts.oldest: "1y" is not a duration: as in 90s, 5m, 4h, 180d`,
		`serve.yaml:14: topics[0].alerts.new-class: "soon" is not a duration: as in 90s, 5m, 4h, 180d`,
		`serve.yaml:15: topics[0].alerts.retention: "2" is not a duration: as in 90s, 5m, 4h, 180d`,
		`serve.yaml:16: topics[0].alerts.held: "soon" is not a duration: as in 90s, 5m, 4h, 180d`,
		"serve.yaml:17: topics[0].alerts.blocked: it is a list, but a duration is expected: as in 90s, 5m, 4h, 180d",
		`serve.yaml:18: topics[0].alerts.gone: "5" is not a duration: as in 90s, 5m, 4h, 180d`,
		`serve.yaml:20: topics[0].retention.max-age: "soon" is not a duration: as in 90s, 5m, 4h, 180d`,
		`serve.yaml:21: topics[0].retention.max-count: "1.5" is not a whole number`,
		`serve.yaml:22: topics[0].retention.open: "1" is not true or false`,
		"serve.yaml:23: topics[0].retention.archive: it is a list, but a text is expected",
		"serve.yaml:24: topics[0].retention.every: it is a list, but a duration is expected: as in 90s, 5m, 4h, 180d",
		"serve.yaml:26: s3.endpoint: it is a list, but a text is expected",
		"serve.yaml:27: s3.region: it has keys, but a text is expected",
		`serve.yaml:28: max-classes: "x" is not a whole number`,
		"serve.yaml:30: redact.paths: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:31: redact.headers: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:32: redact.patterns: it has keys, but a list is expected: as in [a, b]",
		"serve.yaml:33: rules-file: it is a list, but a text is expected",
		"serve.yaml:35: access.tokens-file: it is a list, but a text is expected",
		"serve.yaml:37: access.proxy.header: it is a list, but a text is expected",
		"serve.yaml:38: access.proxy.groups-header: it is a list, but a text is expected",
		"serve.yaml:39: access.proxy.from: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:41: access.proxy.groups.a[0].role: it is a list, but a word is expected",
		"serve.yaml:41: access.proxy.groups.a[0].topics: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:43: access.oidc.issuer: it is a list, but a text is expected",
		"serve.yaml:44: access.oidc.client-id: it is a list, but a text is expected",
		"serve.yaml:45: access.oidc.client-secret-env: it is a list, but a text is expected",
		"serve.yaml:46: access.oidc.client-secret-file: it is a list, but a text is expected",
		"serve.yaml:47: access.oidc.scopes: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:48: access.oidc.name-claim: it is a list, but a text is expected",
		"serve.yaml:49: access.oidc.groups-claim: it is a list, but a text is expected",
		`serve.yaml:51: access.oidc.groups.a[0].role: "king" is not a role: viewer, reader, operator or admin`,
		"serve.yaml:51: access.oidc.groups.a[0].topics: it is a single value, but a list is expected: as in [a, b]",
		"serve.yaml:52: access.session-key-file: it is a list, but a text is expected",
		`serve.yaml:53: access.open-metrics: "yes" is not true or false`,
		"serve.yaml:55: tls.cert-file: it is a list, but a text is expected",
		"serve.yaml:56: tls.key-file: it is a list, but a text is expected",
		"serve.yaml:58: notify[0].name: it is a list, but a text is expected",
		"serve.yaml:59: notify[0].url-env: it is a list, but a text is expected",
		"serve.yaml:60: notify[0].url-file: it is a list, but a text is expected",
		"serve.yaml:61: notify[0].topics: it is a list, but a text is expected",
		"serve.yaml:62: notify[0].severity: it is a list, but a text is expected",
	}},
	{"lists and keys stand for each other", map[string]string{"serve.yaml": `topics: {match: a}
access: {proxy: 10.0.0.1, oidc: [a]}
redact: "a"
tls: true
notify: [chat]
topics-file: a
`}, []string{
		"serve.yaml:1: topics: it has keys, but a list is expected: as in [a, b]",
		"serve.yaml:2: access.proxy: it is a single value, but keys with values are expected: header, groups-header, from, groups",
		"serve.yaml:2: access.oidc: it is a list, but keys with values are expected: issuer, client-id, client-secret-env, client-secret-file, scopes, name-claim, groups-claim, groups",
		"serve.yaml:3: redact: it is a single value, but keys with values are expected: paths, headers, patterns",
		"serve.yaml:4: tls: it is a single value, but keys with values are expected: cert-file, key-file",
		"serve.yaml:5: notify[0]: it is a single value, but keys with values are expected: name, url-env, url-file, topics, severity",
		"serve.yaml:6: topics-file: there is no such key; allowed are " + topKeys,
	}},
	// What follows from another mistake is not reported: listen may be right once access is, and
	// what is missing beside a misspelled key may be that one.
	{"keys are misspelled", map[string]string{"serve.yaml": `listn: x
listen: 0.0.0.0:8642
url: siding
redcat: {}
tpoics: []
max_classes: 5
zzz: 1
access:
  tokenfile: a
topics:
  - macth: a
    criticalty: high
    alerts:
      warn: 5
notify:
  - name: chat
    url: slack://hunter2
  - {name: mail, url-env: SIDING_TEST_NOT_SET}
`}, []string{
		"serve.yaml:1: listn: there is no such key; did you mean listen?",
		`serve.yaml:3: url: "siding" is not an address, as in https://siding.example.com`,
		"serve.yaml:4: redcat: there is no such key; did you mean redact?",
		"serve.yaml:5: tpoics: there is no such key; did you mean topics?",
		"serve.yaml:6: max_classes: there is no such key; did you mean max-classes?",
		"serve.yaml:7: zzz: there is no such key; allowed are " + topKeys,
		"serve.yaml:9: access.tokenfile: there is no such key; did you mean tokens-file?",
		"serve.yaml:11: topics[0].macth: there is no such key; did you mean match?",
		"serve.yaml:12: topics[0].criticalty: there is no such key; did you mean criticality?",
		"serve.yaml:14: topics[0].alerts.warn: there is no such key; allowed are warn-open, page-open, new, oldest, new-class, retention, held, blocked, gone",
		"serve.yaml:17: notify[0].url: there is no such key; allowed are name, url-env, url-file, topics, severity",
		"serve.yaml:18: notify[1].url-env: the variable SIDING_TEST_NOT_SET is not set: it has the receiver's URL",
	}},
	{"values are out of bounds", map[string]string{"serve.yaml": `listen: 0.0.0.0:8080
url: siding
refresh: 10ms
max-classes: -1
redact:
  paths: [a..]
  headers: ["a,,b"]
  patterns: ["(", ".*"]
topics:
  - match: a*
    criticality: high
  - match: '['
    criticality: vital
  - criticality: high
  - match: a
    alerts:
      warn-open: 10
      page-open: 5
tls:
  cert-file: tls.crt
notify:
  - name: chat
  - url-env: A
    url-file: b
    topics: '['
    severity: loud
`}, []string{
		`serve.yaml:1: listen: "0.0.0.0:8080" is not a loopback address: without access control the server listens on 127.0.0.1 or [::1] only`,
		`serve.yaml:2: url: "siding" is not an address, as in https://siding.example.com`,
		"serve.yaml:3: refresh: 10ms: at least 500ms",
		"serve.yaml:4: max-classes: -1: at least 1",
		`serve.yaml:6: redact.paths[0]: "a.." at column 4: a name is expected here, in brackets and quotes if it is an odd one: ['a.b']`,
		`serve.yaml:7: redact.headers[0]: "a,,b" has an empty name`,
		"serve.yaml:8: redact.patterns[0]: error parsing regexp: missing closing ): `(`",
		`serve.yaml:8: redact.patterns[1]: ".*" fits the empty text, so it would mark every place`,
		`serve.yaml:12: topics[1].match: "[" ` + aPattern,
		`serve.yaml:13: topics[1].criticality: "vital": critical, high, normal, low or minor`,
		`serve.yaml:14: topics[2].match: "" ` + aPattern,
		"serve.yaml:18: topics[3].alerts.page-open: 5 is below warn-open, 10",
		"serve.yaml:19: tls.key-file: required beside cert-file",
		"serve.yaml:22: notify[0].url-env: either this or url-file is required",
		"serve.yaml:23: notify[1].name: required: it stands for the receiver in the log and in ledgers",
		"serve.yaml:23: notify[1].url-env: either this or url-file is required",
		`serve.yaml:25: notify[1].topics: "[" ` + aPattern,
		`serve.yaml:26: notify[1].severity: "loud": warn or page`,
	}},
	{"words of a topic are no words", map[string]string{"serve.yaml": `topics:
  - match: a
    owner: "two\nlines"
    runbook: javascript:alert(1)
    note: "\e[31mred"
`}, []string{
		`serve.yaml:3: topics[0].owner: "two\nlines" has line breaks or other characters that cannot be seen`,
		`serve.yaml:4: topics[0].runbook: "javascript:alert(1)" is no URL such as https://wiki.example.com/orders: http or https, without a name and password`,
		`serve.yaml:5: topics[0].note: "\x1b[31mred" has line breaks or other characters that cannot be seen`,
	}},
	{"retention is out of bounds", map[string]string{"serve.yaml": `topics:
  - match: a
    retention:
      max-count: -1
      every: 1ms
      archive: gs://letters
  - match: b
    retention: {max-age: -1s}
  - match: c
    retention: {archive: 's3://'}
s3: {endpoint: minio}
`}, []string{
		"serve.yaml:4: topics[0].retention.max-count: -1: the number of letters that stay, at least 1; 0 sets no limit",
		"serve.yaml:5: topics[0].retention.every: 1ms: at least 1s",
		`serve.yaml:6: topics[0].retention.archive: "gs://letters": there is no storage gs://: a path, or s3://bucket/folder/`,
		"serve.yaml:8: topics[1].retention.max-age: -1s sets no limit, and max-count sets none: at least one of them is needed",
		`serve.yaml:10: topics[2].retention.archive: "s3://" is not s3://bucket/folder/`,
		`serve.yaml:11: s3.endpoint: "minio" is not a URL, as in https://minio.example.com:9000`,
	}},
	{"an address without a port", map[string]string{"serve.yaml": "listen: localhost\n"}, []string{`serve.yaml:1: listen: "localhost" is not host:port, as in 127.0.0.1:8642`}},
	{"an address with the name of a port", map[string]string{"serve.yaml": "listen: localhost:http\n"}, []string{`serve.yaml:1: listen: "localhost:http" is not host:port, as in 127.0.0.1:8642`}},
	{"a key without its certificate", map[string]string{"serve.yaml": "tls: {key-file: a}\n"}, []string{"serve.yaml:1: tls.cert-file: required beside key-file"}},
	{"a number that is too large", map[string]string{"serve.yaml": "max-classes: 99999999999999999999\n"}, []string{`serve.yaml:1: max-classes: "99999999999999999999" is not a whole number`}},
	{"a list without an end", map[string]string{"serve.yaml": "group: a\nrefresh: [1\n"}, []string{"serve.yaml:2: sequence end token ']' not found"}},
	{"a key twice", map[string]string{"serve.yaml": "group: a\ngroup: b\n"}, []string{`serve.yaml:2: mapping key "group" already defined at [1:1]`}},
	{"a tab", map[string]string{"serve.yaml": "tls:\n\tcert-file: a\n"}, []string{"serve.yaml:2: found character '\t' that cannot start any token"}},
	{"two documents", map[string]string{"serve.yaml": "group: a\n---\ngroup: b\n"}, []string{"serve.yaml:3: a second document begins here: the file has one"}},
	{"a text", map[string]string{"serve.yaml": "hello\n"}, []string{"serve.yaml:1: it is a single value, but keys with values are expected: " + topKeys}},
	{"access lacks what it needs", map[string]string{"serve.yaml": `access:
  proxy:
    from: [ten, 10.0.0.0/8]
    groups:
      ops: []
      dev: [{topics: ['[', '']}]
  oidc:
    issuer: login.example.com
    groups:
      "*": [{role: viewer}, {}]
`}, []string{
		"serve.yaml:2: access.proxy.header: required: the header with the person's name, as in X-Forwarded-User",
		`serve.yaml:3: access.proxy.from[0]: "ten" is not an address: as in 10.0.0.7 or 10.0.0.0/8`,
		"serve.yaml:5: access.proxy.groups.ops: required: as in [{role: viewer}]",
		"serve.yaml:6: access.proxy.groups.dev[0].role: required: viewer, reader, operator or admin",
		`serve.yaml:6: access.proxy.groups.dev[0].topics[0]: "[" ` + aTopics,
		`serve.yaml:6: access.proxy.groups.dev[0].topics[1]: "" ` + aTopics,
		"serve.yaml:7: access.oidc.client-id: required: the server's id at the provider",
		`serve.yaml:8: access.oidc.issuer: "login.example.com" is not an address, as in https://login.example.com`,
		"serve.yaml:10: access.oidc.groups.*[1].role: required: viewer, reader, operator or admin",
	}},
	{"a proxy without addresses", map[string]string{"serve.yaml": "access:\n  proxy:\n    header: X-User\n"}, []string{
		"serve.yaml:2: access.proxy.from: required: the proxy's addresses, as in [10.0.0.7, 10.0.1.0/24]",
	}},
	{"files are missing", map[string]string{"serve.yaml": `rules-file: r.yaml
access:
  tokens-file: t.yaml
tls:
  cert-file: c.pem
  key-file: k.pem
notify:
  - name: chat
    url-file: chat.url
  - name: mail
    url-env: SIDING_TEST_NOT_SET
`}, []string{
		"serve.yaml:1: rules-file: stat r.yaml: no such file or directory",
		"serve.yaml:3: access.tokens-file: stat t.yaml: no such file or directory",
		"serve.yaml:5: tls.cert-file: stat c.pem: no such file or directory",
		"serve.yaml:9: notify[0].url-file: open chat.url: no such file or directory",
		"serve.yaml:11: notify[1].url-env: the variable SIDING_TEST_NOT_SET is not set: it has the receiver's URL",
	}},
	{"the console's secrets are missing", map[string]string{"serve.yaml": `access:
  session-key-file: s.key
  oidc: {issuer: 'https://login.example.com', client-id: a, client-secret-file: c.txt}
`}, []string{
		"serve.yaml:2: access.session-key-file: open s.key: no such file or directory",
		"serve.yaml:3: access.oidc.client-secret-file: open c.txt: no such file or directory",
	}},
	{"the console's secrets are no secrets", map[string]string{"serve.yaml": `access:
  session-key-file: s.key
  oidc:
    issuer: https://login.example.com
    client-id: a
    client-secret-file: c.txt
`, "s.key": "hunter2", "c.txt": "\n"}, []string{
		"serve.yaml:2: access.session-key-file: s.key has 7 bytes: at least 32, random ones",
		"serve.yaml:6: access.oidc.client-secret-file: c.txt is empty",
	}},
	{"a secret of the provider is not set", map[string]string{"serve.yaml": `access:
  oidc:
    issuer: https://login.example.com
    client-id: a
    client-secret-env: SIDING_TEST_NOT_SET
`}, []string{
		"serve.yaml:5: access.oidc.client-secret-env: the variable SIDING_TEST_NOT_SET is not set",
	}},
	{"two secrets of the provider", map[string]string{"serve.yaml": `access:
  oidc:
    issuer: https://login.example.com
    client-id: a
    client-secret-env: A
    client-secret-file: c.txt
`, "c.txt": "hunter2"}, []string{
		"serve.yaml:5: access.oidc.client-secret-env: either this or client-secret-file is set",
	}},
	{"files have something else", map[string]string{"serve.yaml": `tls:
  cert-file: c.pem
  key-file: k.pem
notify:
  - name: chat
    url-file: chat.url
  - name: matrix
    url-file: matrix.url
`, "c.pem": "no", "k.pem": "no", "chat.url": "nothing://hunter2", "matrix.url": "matrix://user:hunter2@example.com/"}, []string{
		"serve.yaml:2: tls.cert-file: c.pem and k.pem are no certificate and its key in PEM form: tls: failed to find any PEM data in certificate input",
		`serve.yaml:6: notify[0].url-file: the URL of the file chat.url: ` +
			`unknown service: "nothing": it is as in slack://… or smtp://…, see https://shoutrrr.nickfedor.com`,
		"serve.yaml:8: notify[1].url-file: the URL of the file matrix.url: the library takes no client for this kind, so its requests would have no bounds: " +
			"use Slack, Teams, Discord, Mattermost, Rocket.Chat, PagerDuty, Pushover, ntfy, Gotify, e-mail, or a webhook (generic): it is as in slack://… or smtp://…, see https://shoutrrr.nickfedor.com",
	}},
	{"there are neither rules nor tokens", map[string]string{"serve.yaml": "rules-file: rules.yaml\naccess: {tokens-file: tokens.yaml}\n", "rules.yaml": "# nothing\n", "tokens.yaml": "tokens:\n"}, []string{
		"tokens.yaml:1: tokens: required: a list of tokens, or [] for none",
		"rules.yaml: rules: required: a list of rules, or [] for none",
	}},
	{"rules have values of the wrong kind", map[string]string{"serve.yaml": "rules-file: rules.yaml\n", "rules.yaml": `rules:
  - name: [a]
    topics: [a]
    classes: a
    groups: a
    cool-down: soon
    times: Mon
    zone: [UTC]
    rate: fast
    window: 5
    max-replays: 1.5
    wait: x
    max-wait: [1h]
    clases: [a]
    delay: later
    fingerprints: a
    reasons: terminal
    keys: a
    headers: a
    attempts: [1]
    where: [a]
    since: [1]
    until: {a: b}
    entered-since: soon
    entered-until: 5
rule: []
`}, []string{
		"rules.yaml:2: rules[0].name: it is a list, but a text is expected",
		"rules.yaml:3: rules[0].topics: it is a list, but a text is expected",
		"rules.yaml:4: rules[0].classes: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:5: rules[0].groups: it is a single value, but a list is expected: as in [a, b]",
		`rules.yaml:6: rules[0].cool-down: "soon" is not a duration: as in 90s, 5m, 4h, 180d`,
		"rules.yaml:7: rules[0].times: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:8: rules[0].zone: it is a list, but a text is expected",
		`rules.yaml:9: rules[0].rate: "fast" is not a number`,
		`rules.yaml:10: rules[0].window: "5" is not a duration: as in 90s, 5m, 4h, 180d`,
		`rules.yaml:11: rules[0].max-replays: "1.5" is not a whole number`,
		`rules.yaml:12: rules[0].wait: "x" is not a duration: as in 90s, 5m, 4h, 180d`,
		"rules.yaml:13: rules[0].max-wait: it is a list, but a duration is expected: as in 90s, 5m, 4h, 180d",
		"rules.yaml:14: rules[0].clases: there is no such key; did you mean classes?",
		`rules.yaml:15: rules[0].delay: "later" is not a duration: as in 90s, 5m, 4h, 180d`,
		"rules.yaml:16: rules[0].fingerprints: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:17: rules[0].reasons: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:18: rules[0].keys: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:19: rules[0].headers: it is a single value, but a list is expected: as in [a, b]",
		"rules.yaml:20: rules[0].attempts: it is a list, but a text is expected",
		"rules.yaml:21: rules[0].where: it is a list, but a text is expected",
		"rules.yaml:22: rules[0].since: it is a list, but a time is expected: as in 2026-11-23T17:00:00Z",
		"rules.yaml:23: rules[0].until: it has keys, but a time is expected: as in 2026-11-23T17:00:00Z",
		`rules.yaml:24: rules[0].entered-since: "soon" is not a time: as in 2026-11-23T17:00:00Z`,
		`rules.yaml:25: rules[0].entered-until: "5" is not a time: as in 2026-11-23T17:00:00Z`,
		"rules.yaml:26: rule: there is no such key; did you mean rules?",
	}},
	{"rules are out of bounds", map[string]string{"serve.yaml": "rules-file: rules.yaml\nrefresh: 1ms\n", "rules.yaml": `rules:
  - topics: '['
    cool-down: -5m
    times: [Mon-Fri, noon]
    zone: Europe/Atlantis
    rate: -1
    window: -1s
    max-replays: -1
    wait: 2h
    max-wait: 1h
  - {name: a, topics: a, classes: [b]}
  - {name: a, topics: a, classes: [b], wait: -1m}
`}, []string{
		"serve.yaml:2: refresh: 1ms: at least 500ms",
		"rules.yaml:2: rules[0].name: required: it is written to ledgers",
		`rules.yaml:2: rules[0].topics: "[" ` + aPattern,
		"rules.yaml:2: rules[0].classes: required: a rule for all classes would redrive bugs",
		"rules.yaml:3: rules[0].cool-down: -5m0s is below 0",
		`rules.yaml:4: rules[0].times[1]: "noon" is no time: as in Mon-Fri 08:00-18:00, Sat,Sun or 22:00-04:00`,
		`rules.yaml:5: rules[0].zone: "Europe/Atlantis" is no time zone: as in Europe/Berlin`,
		"rules.yaml:6: rules[0].rate: -1 is below 0: it is in records a second",
		"rules.yaml:7: rules[0].window: -1s is below 0",
		"rules.yaml:8: rules[0].max-replays: -1 is below 0: it is how often one record may be redriven",
		"rules.yaml:10: rules[0].max-wait: 1h is below wait, 2h",
		"rules.yaml:12: rules[2].wait: -1m0s is below 0",
		`rules.yaml:12: rules[2].name: "a": another rule has this name`,
	}},
	{"rules select by what cannot be", map[string]string{"serve.yaml": "rules-file: rules.yaml\n", "rules.yaml": `rules:
  - name: a
    topics: a
    classes: [b, 'c d']
    where: value.n >
    attempts: few
    since: 6h
    until: 2026-11-01
    entered-since: 2026-11-02T00:00:00Z
    entered-until: 2026-11-01T00:00:00Z
    state: [open]
  - name: b
    topics: a
    classes: [b]
    where: ''
    groups: []
    headers: [' ']
    reasons:
    keys: ['']
    fingerprints: [f, "\t"]
`}, []string{
		`rules.yaml:4: rules[0].classes: "c d" is not a class: letters, digits and _ . * / - only`,
		"rules.yaml:5: rules[0].where: column 9: unexpected token EOF",
		`rules.yaml:6: rules[0].attempts: "few" is not a number or a range such as 3, 3-5, 3- or -5`,
		`rules.yaml:7: rules[0].since: "6h" is not a time: as in 2026-11-23T17:00:00Z`,
		`rules.yaml:8: rules[0].until: "2026-11-01" is not a time: as in 2026-11-23T17:00:00Z`,
		"rules.yaml:10: rules[0].entered-until: it is not after the beginning",
		"rules.yaml:11: rules[0].state: there is no such key; allowed are name, topics, classes, fingerprints, groups, reasons, since, until, entered-since, entered-until, keys, headers, attempts, where, cool-down, delay, times, zone, rate, window, max-replays, wait, max-wait",
		"rules.yaml:15: rules[1].where: " + isEmpty,
		"rules.yaml:16: rules[1].groups: " + isEmpty,
		"rules.yaml:17: rules[1].headers: " + isEmpty,
		"rules.yaml:18: rules[1].reasons: " + isEmpty,
		"rules.yaml:20: rules[1].fingerprints: " + isEmpty,
	}},
	{"tokens have values of the wrong kind", map[string]string{"serve.yaml": "access: {tokens-file: tokens.yaml}\n", "tokens.yaml": `tokens:
  - name: [a]
    sha256: [a]
    grants: [{role: [a], topics: a}]
    secret: hunter2
  - hunter2
`}, []string{
		"tokens.yaml:2: tokens[0].name: it is a list, but a text is expected",
		"tokens.yaml:3: tokens[0].sha256: it is a list, but a text is expected",
		"tokens.yaml:4: tokens[0].grants[0].role: it is a list, but a word is expected",
		"tokens.yaml:4: tokens[0].grants[0].topics: it is a single value, but a list is expected: as in [a, b]",
		"tokens.yaml:5: tokens[0].secret: there is no such key; allowed are name, sha256, grants",
		"tokens.yaml:6: tokens[1]: it is a single value, but keys with values are expected: name, sha256, grants",
	}},
	{"tokens lack what is required", map[string]string{"serve.yaml": "access: {tokens-file: tokens.yaml}\n", "tokens.yaml": `tokens:
  - sha256: hunter2
  - name: ada
    sha256: ` + aToken + `
    grants: [{}, {role: viewer, topics: ['[']}, {role: king}]
  - name: bob
    sha256: ` + aToken + `
    grants: [{role: viewer}]
`}, []string{
		"tokens.yaml:2: tokens[0].name: required: it is written to ledgers",
		"tokens.yaml:2: tokens[0].grants: required: as in [{role: viewer}]",
		"tokens.yaml:2: tokens[0].sha256: not 64 hexadecimal digits: as sha256sum prints them",
		`tokens.yaml:5: tokens[1].grants[2].role: "king" is not a role: viewer, reader, operator or admin`,
		"tokens.yaml:5: tokens[1].grants[0].role: required: viewer, reader, operator or admin",
		`tokens.yaml:5: tokens[1].grants[1].topics[0]: "[" ` + aTopics,
		"tokens.yaml:7: tokens[2].sha256: another token has this hash",
	}},
	{"each key of the registry has a value of the wrong kind", map[string]string{"serve.yaml": `registry:
  url: [a]
  user: [a]
  password-env: [a]
  password-file: [a]
  token-env: [a]
  token-file: [a]
  ca-file: [a]
  cert-file: [a]
  key-file: [a]
`}, []string{
		"serve.yaml:2: registry.url: it is a list, but a text is expected",
		"serve.yaml:3: registry.user: it is a list, but a text is expected",
		"serve.yaml:4: registry.password-env: it is a list, but a text is expected",
		"serve.yaml:5: registry.password-file: it is a list, but a text is expected",
		"serve.yaml:6: registry.token-env: it is a list, but a text is expected",
		"serve.yaml:7: registry.token-file: it is a list, but a text is expected",
		"serve.yaml:8: registry.ca-file: it is a list, but a text is expected",
		"serve.yaml:9: registry.cert-file: it is a list, but a text is expected",
		"serve.yaml:10: registry.key-file: it is a list, but a text is expected",
	}},
	{"a registry with a secret in its URL", map[string]string{"serve.yaml": "registry: {url: 'https://u:hunter2@r'}\n"}, []string{
		"serve.yaml:1: registry: the URL must not have a user or a password: give them apart from it",
	}},
	{"a secret of the registry that is not there", map[string]string{"serve.yaml": "registry: {url: 'https://r', token-file: token}\n"}, []string{
		"serve.yaml:1: registry: open token: no such file or directory",
	}},
}

const topKeys = "listen, url, group, refresh, topics, max-classes, redact, registry, rules-file, s3, access, tls, notify"

// Each mistake has the file, the line, and what is allowed there, and all are reported at once.
// None quotes a secret.
func TestLoad_SaysWhereWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, test := range wrongFiles {
		got, want := mistakes(write(t, test.files)), strings.Join(test.want, "\n")
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", test.about, got, want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: a secret is in %s", test.about, got)
		}
	}
}

// There is a mistake of every key in the table: a new key needs one, too.
func TestLoad_IsTriedWithEveryKey(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	for _, test := range wrongFiles {
		for _, line := range test.want {
			said.WriteString(regexp.MustCompile(`\[\d+\]`).ReplaceAllString(line, "[]") + "\n")
		}
	}
	all := comments(t)
	for _, f := range configFiles {
		for _, r := range rows(schemaOf(t, f.is, all), "") {
			key := strings.ReplaceAll(r.key, "NAME", "a")
			if said := said.String(); !strings.Contains(said, ": "+key+": ") && !strings.Contains(said, ": "+key+"[") && !strings.Contains(said, ": "+key+".") {
				t.Errorf("%s.yaml: no test gives %s a wrong value", f.name, key)
			}
		}
	}
}

// What is right is read. An empty file is right, too, and names of files are relative to the file
// that has them.
func TestLoad_ReadsWhatIsRight(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "---\n", "topics:\nnotify: ~\n"} {
		if got := mistakes(write(t, map[string]string{"serve.yaml": text})); got != "" {
			t.Errorf("%q: %s", text, got)
		}
	}
	dir := write(t, map[string]string{
		"serve.yaml": `listen: 0.0.0.0:8642
refresh: 3s
rules-file: rules.yaml
access:
  tokens-file: tokens.yaml
topics:
  - {match: a, alerts: &strict {oldest: 90m, new: -1}}
  - match: b
    alerts: *strict
notify:
  - {name: hook, url-file: hook.url}
`,
		"rules.yaml":  "rules: [{name: a, topics: '*', classes: [http.*], zone: Europe/Berlin, rate: 0.5}]\n",
		"tokens.yaml": "tokens: [{name: ada, sha256: " + aToken + ", grants: [{role: viewer}]}]\n",
		"hook.url":    "generic://127.0.0.1:1/\n",
	})
	cfg, err := Load(filepath.Join(dir, "serve.yaml"))
	if err != nil || cfg.Refresh.String() != "3s" || cfg.Topics[1].Alerts.Oldest.String() != "1h30m0s" || cfg.RulesFile != filepath.Join(dir, "rules.yaml") {
		t.Errorf("%+v, %v", cfg, err)
	}
	all, err := rule.Parse("rules.yaml", []byte(`rules:
  - {name: a, topics: '*', classes: [c], fingerprints: [f], groups: [g], reasons: [terminal], since: 2026-11-01T00:00:00Z, until: "2026-11-02T00:00:00+01:00",
     entered-since: 2026-11-03T00:00:00Z, entered-until: 2026-11-04T00:00:00Z, keys: [''], headers: [h=v], attempts: 3-, where: value.n > 1}
`))
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	want := api.Filter{
		Class: []string{"c"}, Fingerprint: []string{"f"}, Group: []string{"g"}, Reason: []string{"terminal"}, Since: day(1), Until: day(2).Add(-time.Hour),
		EnteredSince: day(3), EnteredUntil: day(4), Key: []string{""}, Header: []string{"h=v"}, Attempts: "3-", Where: "value.n > 1",
	}
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[0].Filter; got.Until.Equal(want.Until) {
		if got.Until = want.Until; !reflect.DeepEqual(got, want) {
			t.Errorf("the rule selects by %+v, want %+v", got, want)
		}
	} else {
		t.Errorf("until is %v, want %v", got.Until, want.Until)
	}
}

func TestLoad_NamesAFileThatIsMissing(t *testing.T) {
	t.Parallel()
	if got, want := mistakes(t.TempDir()), "the configuration cannot be read: open serve.yaml: no such file or directory"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A retention without keys has its defaults, and none is none. A directory of archives is relative
// to the file; a bucket is where it is.
func TestLoad_ReadsRetention(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"serve.yaml": `topics:
  - {match: a, retention: {}}
  - {match: b, retention: &kept {max-age: 90d, archive: letters}}
  - {match: c, retention: *kept}
  - {match: d, retention: {archive: 's3://letters/d'}}
  - {match: e, retention: ~}
  - {match: f}
`})
	cfg, err := Load(filepath.Join(dir, "serve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "letters")
	want := []*Retention{{}, {MaxAge: 90 * 24 * time.Hour, Archive: archive}, {MaxAge: 90 * 24 * time.Hour, Archive: archive}, {Archive: "s3://letters/d"}, nil, nil}
	for i, t0 := range cfg.Topics {
		if is := t0.Retention; (is == nil) != (want[i] == nil) || is != nil && *is != *want[i] {
			t.Errorf("topics[%d]: %+v, want %+v", i, is, want[i])
		}
	}
}

// A directory for which an alias stands is one directory, also if the file is named by a relative
// path.
func TestLoad_AnAliasIsTheSameDirectory(t *testing.T) {
	t.Chdir(write(t, nil))
	if err := os.Mkdir("conf", 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("conf", "serve.yaml")
	text := "topics:\n  - {match: a, retention: &kept {archive: letters}}\n  - {match: b, retention: *kept}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(name)
	if want := filepath.Join("conf", "letters"); err != nil || cfg.Topics[0].Retention.Archive != want || cfg.Topics[1].Retention.Archive != want {
		t.Errorf("%+v, %v, want %s", cfg.Topics, err, want)
	}
}

package connect

import (
	"crypto/rand"
	"crypto/rsa"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCluster_ReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	some := t.TempDir()
	noCert := write(t, filepath.Join(some, "no.pem"), "no certificate")
	empty := write(t, filepath.Join(some, "empty"), "\n")
	pass := write(t, filepath.Join(some, "pass"), "x\n")
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := write(t, filepath.Join(some, "cert"), newIdentity(t).cert), write(t, filepath.Join(some, "key"), keyInPEM(t, otherKey))
	for _, c := range []struct {
		name  string
		world world
		want  []string
	}{
		{"nothing", world{}, []string{"no brokers are given: use --brokers host:port,…, SIDING_BROKERS or a profile in "}},
		{"no address", world{args: []string{"--brokers", " , "}}, []string{"--brokers has no address"}},
		{
			"addresses",
			world{env: map[string]string{"SIDING_BROKERS": "ok,a:b,SSL://c:1,:9092,[::1]:9092,::1,d:70000"}},
			[]string{`SIDING_BROKERS: "a:b" is not host:port`, "omit SSL://, give c:1", `":9092" is not`, `"::1" is not`, `"d:70000" is not`},
		},
		{
			"all at once",
			world{
				args: []string{"--timeout", "soon", "--tls=false", "--tls-ca", noCert, "--sasl", "plan", "--dlq-name", "{topic}", "--retry-name", "{topic}.r"},
			},
			[]string{
				"no brokers are given", `--timeout: "soon" is not a duration`, "--tls is off, and --tls-ca needs it: omit one",
				`--sasl: "plan" is not a known mechanism: choose PLAIN, SCRAM-SHA-256`, `naming DLQ "{topic}": there is no text`, `naming Retry "{topic}.r": {delay} must occur once`,
			},
		},
		{"a file that is not there", world{args: []string{"--brokers", "a", "--tls-ca", "/none/ca.pem"}}, []string{"--tls-ca: open /none/ca.pem: no such file"}},
		{"a file of something else", world{args: []string{"--brokers", "a", "--tls-ca", noCert}}, []string{"no.pem holds no certificate in PEM form"}},
		{"a certificate alone", world{args: []string{"--brokers", "a", "--tls-cert", certFile}}, []string{"--tls-cert is given without its key: give --tls-key too"}},
		{"a key alone", world{env: map[string]string{"SIDING_BROKERS": "a", "SIDING_TLS_KEY": keyFile}}, []string{"SIDING_TLS_KEY is given without its certificate: give --tls-cert too"}},
		{"another's key", world{args: []string{"--brokers", "a", "--tls-cert", certFile, "--tls-key", keyFile}}, []string{"--tls-cert and --tls-key: tls: private key does not match"}},
		{"no truth", world{env: map[string]string{"SIDING_BROKERS": "a", "SIDING_TLS": "maybe"}}, []string{`SIDING_TLS: "maybe" is neither true nor false`}},

		{"nobody", world{args: []string{"--brokers", "a", "--sasl", "plain"}}, []string{"PLAIN needs --sasl-user", "PLAIN needs --sasl-password-file or SIDING_SASL_PASSWORD"}},
		{"no token", world{args: []string{"--brokers", "a", "--sasl", "oauthbearer"}}, []string{"OAUTHBEARER needs --sasl-token-file or SIDING_SASL_TOKEN"}},
		{"no mechanism", world{args: []string{"--brokers", "a", "--sasl-user", "u"}}, []string{"--sasl-user is given without a mechanism: give --sasl too"}},
		{
			"a password for a token",
			world{args: []string{"--brokers", "a", "--sasl", "OAUTHBEARER", "--sasl-password-file", pass}, env: map[string]string{"SIDING_SASL_TOKEN": "t"}},
			[]string{"--sasl-password-file is given, and OAUTHBEARER (--sasl) does not take it"},
		},
		{
			"none and a user",
			world{args: []string{"--brokers", "a", "--sasl", "none", "--sasl-user", "u"}},
			[]string{"--sasl-user is given, and NONE (--sasl) does not take it"},
		},
		{
			"a secret twice",
			world{args: []string{"--brokers", "a", "--sasl", "PLAIN", "--sasl-user", "u"}, env: map[string]string{"SIDING_SASL_PASSWORD": "x", "SIDING_SASL_PASSWORD_FILE": pass}},
			[]string{"SIDING_SASL_PASSWORD and SIDING_SASL_PASSWORD_FILE are both set: unset one"},
		},
		{"an empty secret", world{args: []string{"--brokers", "a", "--sasl", "PLAIN", "--sasl-user", "u", "--sasl-password-file", empty}}, []string{"empty is empty"}},

		{"no such profile", world{args: []string{"--profile", "prod"}, config: "profiles: {b: {}, a: {}}"}, []string{`there is no profile "prod": there are a, b`}},
		{"no file for the profile", world{args: []string{"--profile", "prod"}}, []string{`profile "prod": the configuration file`, "does not exist: write it, or give --config"}},
		{"no such file", world{args: []string{"--config", "/none.yaml"}}, []string{"configuration: open /none.yaml: no such file"}},
		{"no YAML", world{config: "profiles:\n\t- x"}, []string{"config.yaml:2: found character … that cannot start any token"}},
		{"a list", world{config: "- x"}, []string{"config.yaml:1: a name, or keys with values, is expected here"}},
		{
			"lists for names and mappings",
			world{config: "profile: [a]\nprofiles: [b]"},
			[]string{"config.yaml:1: a name, or keys with values, is expected here", "config.yaml:2: a name, or keys with values, is expected here"},
		},
		{"merged from a text", world{config: "profile: a\nprofiles:\n  a: {<<: b}"}, []string{"config.yaml:3: a name, or keys with values, is expected here"}},
		{"an anchor within itself", world{config: "profile: a\nprofiles:\n  a: &a\n    <<: *a"}, []string{"config.yaml:4: unknown anchor … referenced"}},
		{
			"unknown keys",
			world{config: "profile: a\nprofils: {}\nprofiles: {}\n"},
			[]string{"config.yaml:2: field profils not found"},
		},
		{
			"a profile of mistakes",
			world{config: "profile: a\nprofiles:\n  a:\n    broker: x\n    tls: [yes]\n    brokers: a\n    sasl-password-env: SIDING_TEST_NONE\n"},
			[]string{"config.yaml:4: profile a: broker is not known: keys are the flags' names", "config.yaml:5: profile a: tls has one value"},
		},
		{
			"a key twice and no keys",
			world{config: "profile: a\nprofiles:\n  a:\n    brokers: a\n    brokers: b\n  b: [c]\n"},
			[]string{"config.yaml:5: mapping key … already defined at line 4", "config.yaml:6: a name, or keys with values, is expected here"},
		},
		{
			"an unset variable",
			world{config: "profile: a\nprofiles:\n  a: {brokers: x, sasl: plain, sasl-user: u, sasl-password-env: NONE}"},
			[]string{"sasl-password-env of profile a: the variable that it names is not set"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.world.resolve(t)
			if err == nil {
				t.Fatal("it is accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			for _, w := range c.want {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, w) }) {
					t.Errorf("no line says %q:\n%v", w, err)
				}
			}
			if len(lines) > len(c.want) {
				t.Errorf("%d problems, want %d:\n%v", len(lines), len(c.want), err)
			}
		})
	}
}

func TestCluster_WarnsOfWhatIsDangerous(t *testing.T) {
	t.Parallel()
	got, err := world{args: []string{"--brokers", "a", "--tls-insecure-skip-verify"}}.resolve(t)
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "--tls-insecure-skip-verify: no broker's certificate is checked") {
		t.Errorf("warnings = %q, %v", got.Warnings, err)
	}
	env := map[string]string{"SIDING_SASL_PASSWORD": "x"}
	got, err = world{args: []string{"--brokers", "a", "--sasl", "plain", "--sasl-user", "u"}, env: env}.resolve(t)
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "PLAIN without TLS sends the secret") {
		t.Errorf("warnings = %q, %v", got.Warnings, err)
	}
}

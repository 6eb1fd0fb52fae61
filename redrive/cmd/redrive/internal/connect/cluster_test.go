package connect

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

func TestFlagsComeBeforeTheEnvironmentAndThatBeforeTheProfile(t *testing.T) {
	t.Parallel()
	const config = `
profile: staging
profiles:
  staging:
    brokers: [profile-1, "profile-2:9093"]
    client-id: profile
    timeout: 3s
    dlq-name: "{topic}.dead"
  other:
    brokers: other
`
	for _, c := range []struct {
		name    string
		world   world
		brokers string
		client  string
		wait    time.Duration
		dlq     string
	}{
		{"the file's own choice", world{config: config}, "profile-1,profile-2:9093", "profile", 3 * time.Second, "{topic}.dead"},
		{"the variable", world{config: config, env: map[string]string{"SIDING_BROKERS": "env:1", "SIDING_TIMEOUT": "1m"}}, "env:1", "profile", time.Minute, "{topic}.dead"},
		{
			"the flag", world{
				config: config, args: []string{"--brokers", "flag:1, flag:2", "--dlq-name", "dead-{topic}"},
				env: map[string]string{"SIDING_BROKERS": "env:1", "SIDING_CLIENT_ID": "env"},
			}, "flag:1,flag:2", "env", 3 * time.Second, "dead-{topic}",
		},
		{"another profile", world{config: config, args: []string{"--profile", "other"}}, "other", defaultClientID, defaultTimeout, ""},
		{"a profile by variable", world{config: config, env: map[string]string{"SIDING_PROFILE": "other"}}, "other", defaultClientID, defaultTimeout, ""},
		{"no file", world{args: []string{"--brokers", "a"}}, "a", defaultClientID, defaultTimeout, ""},
		{"keys without values", world{args: []string{"--brokers", "a"}, config: "profile: a\nprofiles:\n  a: {client-id: ~, timeout: , sasl: null}"}, "a", defaultClientID, defaultTimeout, ""},
		{"an empty file", world{args: []string{"--brokers", "a"}, config: "# later\n"}, "a", defaultClientID, defaultTimeout, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.world.resolve(t)
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got.Brokers, ","); s != c.brokers {
				t.Errorf("brokers = %s, want %s", s, c.brokers)
			}
			if got.Timeout != c.wait {
				t.Errorf("timeout = %s, want %s", got.Timeout, c.wait)
			}
			if want := (retrytopics.Naming{DLQ: c.dlq}); got.Naming != want {
				t.Errorf("naming = %+v, want %+v", got.Naming, want)
			}
			cl, err := kgo.NewClient(got.Opts()...)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			if id := cl.OptValue(kgo.ClientID); id != c.client {
				t.Errorf("client id = %v, want %s", id, c.client)
			}
		})
	}
}

func TestEveryProblemIsToldAtOnceWithWhatToDo(t *testing.T) {
	t.Parallel()
	some := t.TempDir()
	noCert := write(t, filepath.Join(some, "no.pem"), "no certificate")
	empty := write(t, filepath.Join(some, "empty"), "\n")
	pass := write(t, filepath.Join(some, "pass"), "x\n")
	cert, key := newAuthority(t).issue(t, "a")
	_, otherKey := newAuthority(t).issue(t, "b")
	certFile, keyFile := write(t, filepath.Join(some, "cert"), cert), write(t, filepath.Join(some, "key"), otherKey)
	_ = key
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
		{"a file that is not there", world{args: []string{"--brokers", "a", "--tls-ca", "/none/ca.pem"}}, []string{"--tls-ca: read /none/ca.pem: no such file"}},
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
		{"no such file", world{args: []string{"--config", "/none.yaml"}}, []string{"configuration: read /none.yaml: no such file"}},
		{"no YAML", world{config: "profiles:\n\t- x"}, []string{"config.yaml: yaml: line 2"}},
		{"a list", world{config: "- x"}, []string{"config.yaml:1: keys with values are expected here"}},
		{
			"unknown keys",
			world{config: "profile: a\nprofils: {}\nprofiles: {}\n"},
			[]string{"config.yaml:2: profils is not known: there are profile and profiles"},
		},
		{
			"a profile of mistakes",
			world{config: "profile: a\nprofiles:\n  a:\n    broker: x\n    tls: [yes]\n    brokers: a\n    sasl-password-env: SIDING_TEST_NONE\n"},
			[]string{"config.yaml:4: profile a: broker is not known: keys are the flags' names", "config.yaml:5: profile a: tls has one value"},
		},
		{
			"a key twice and no keys",
			world{config: "profile: a\nprofiles:\n  a:\n    brokers: a\n    brokers: b\n  b: [c]\n"},
			[]string{"config.yaml:5: mapping key … already defined at line 4", "config.yaml:6: keys with values are expected here"},
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

// A flag that says no to what the profile says takes the profile's details with it.
func TestAnExplicitNoOverridesTheDetailsBelowIt(t *testing.T) {
	t.Parallel()
	got, err := world{
		config: "profile: a\nprofiles:\n  a: {brokers: x, tls-ca: none.pem, sasl: PLAIN, sasl-user: u, sasl-password-file: none}",
		args:   []string{"--tls=false", "--sasl", "none"},
	}.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	if got.tls || got.sasl != "" {
		t.Errorf("tls %v, sasl %q; want neither", got.tls, got.sasl)
	}
}

func TestFilesOfAProfileAreBesideIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "secrets", "p"), "x")
	config := write(t, filepath.Join(folder, "c.yaml"), "profiles:\n  a: {brokers: x, tls: true, sasl: PLAIN, sasl-user: u, sasl-password-file: secrets/p}")
	if _, err := (world{args: []string{"--config", config, "--profile", "a"}}).resolve(t); err != nil {
		t.Error(err)
	}
}

func TestWhatIsDangerousIsSaid(t *testing.T) {
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

package connect

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

func TestLayers_FlagsThenEnvironmentThenProfile(t *testing.T) {
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
		{
			"what it merges, but for its own", world{
				args:   []string{"--profile", "b"},
				config: "\ufeffprofiles:\n  a: &a {brokers: [a, b], client-id: 007, timeout: 3s}\n  b: {<<: [*a, {timeout: 4s, dlq-name: '{topic}.x'}], client-id: 1e3}",
			}, "a,b", "1e3", 3 * time.Second, "{topic}.x",
		},
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
			cl, err := kgo.NewClient(got.Opts...)
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

// A flag that turns off what the profile turns on takes the profile's details with it.
func TestLayers_AnExplicitNoOverridesTheDetailsBelow(t *testing.T) {
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

package integration

import (
	"strings"
	"testing"
)

func TestSettingsAreNamedAsTheImageReadsThem(t *testing.T) {
	t.Parallel()
	c, err := newConfig([]Option{
		WithConfig("log.retention.ms", "1"),
		WithConfig("a_b.c-d", "2"),
		WithConfig("offsets.topic.replication.factor", "9"),
		WithUser("admin", `a "b"`), WithUser("billing", "c"),
		WithListener("TLS", "SSL", map[string]string{"ssl.client.auth": "required"}), WithListener("SCRAM", "SASL_SSL", nil),
	})
	must(t, err)
	got := c.environment(1, "localhost:20000", "localhost:20001", "localhost:20002")
	for name, want := range map[string]string{
		"KAFKA_LOG_RETENTION_MS":                 "1",
		"KAFKA_A__B_C___D":                       "2",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "9", // a test's setting replaces the default
		"KAFKA_ADVERTISED_LISTENERS":             "CLIENT://localhost:20000,INTERNAL://localhost:9095,TLS://localhost:20001,SCRAM://localhost:20002",
		"KAFKA_LISTENERS":                        "CLIENT://:9092,INTERNAL://:9095,CONTROLLER://:9094,TLS://:9100,SCRAM://:9101",

		"KAFKA_LISTENER_NAME_TLS_SSL_CLIENT_AUTH":           "required",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":              "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,SCRAM:SASL_SSL",
		"KAFKA_LISTENER_NAME_CLIENT_PLAIN_SASL_JAAS_CONFIG": `org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="a \"b\"" user_billing="c";`,
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
}

func TestBadOptionsAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := newConfig([]Option{
		WithBrokers(-1),
		WithImage(""),
		WithConfig("node.id", "4"),
		WithConfig("advertised.listeners", "CLIENT://elsewhere:9092"),
	})
	if err == nil {
		t.Fatal("all of it was accepted")
	}
	for _, want := range []string{"-1 brokers", "image", "node.id", "advertised.listeners"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q:\n%v", want, err)
		}
	}
}

func TestImageOfTheEnvironmentIsTheDefault(t *testing.T) {
	for _, test := range []struct {
		name, env string
		opts      []Option
		want      string
	}{
		{"no image named", "", nil, "apache/kafka:4.3.0"},
		{"environment", "siding/kafka:4.3.0", nil, "siding/kafka:4.3.0"},
		{"option", "siding/kafka:4.3.0", []Option{WithImage("mine:1")}, "mine:1"},
	} {
		t.Setenv("SIDING_KAFKA_IMAGE", test.env)
		c, err := newConfig(test.opts)
		if err != nil || c.image != test.want {
			t.Errorf("%s: image %q, %v, want %q", test.name, c.image, err, test.want)
		}
	}
}

package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecret_IsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := Secret{value: value{text: hunter, from: "SIDING_SASL_PASSWORD"}}
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %[1]v"} {
		fmt.Fprintf(&b, verb+"\n", s)
		fmt.Fprintf(&b, verb+"\n", struct{ S *Secret }{&s})
		fmt.Fprintf(&b, verb+"\n", []Secret{s})
	}
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "secret", s, "in", struct{ S Secret }{s})
	if err := json.NewEncoder(&b).Encode(s); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "hunter") || strings.Contains(b.String(), fmt.Sprintf("%x", "hunter")) {
		t.Errorf("it is printed: %s", &b)
	}
}

// Whatever is wrong with the configuration file, nothing of it that could be a secret is in the
// message.
func TestSecret_InTheWrongPlaceIsRefusedUnseen(t *testing.T) {
	t.Parallel()
	profile := func(lines string) world { return world{config: "profile: a\nprofiles:\n  a:\n" + lines} }
	for _, c := range []struct {
		world world
		want  string
	}{
		{profile("    sasl-password: " + hunter), "config.yaml:4: profile a: sasl-password: a secret has no place in this file; name a file by sasl-password-file, or a variable by sasl-password-env"},
		{profile("    SASL_TOKEN: " + hunter), "name a file by sasl-token-file, or a variable by sasl-token-env"},
		{profile("    password: {x: " + hunter + "}"), "a secret has no place in this file"},
		{profile("    tls-key: |\n      -----BEGIN PRIVATE KEY-----\n      " + hunter), "tls-key names a file; its content has no place here"},
		{profile("    sasl-password-file: [" + hunter + "]"), "sasl-password-file has one value"},
		{profile("    sasl: PLAIN\n    sasl-user: me\n    brokers: b\n    sasl-password-env: " + hunter), "sasl-password-env of profile a: the variable that it names is not set; it takes a variable's name, not the secret"},
		{profile("    sasl: PLAIN\n    sasl-user: me\n    brokers: b\n    sasl-password-file: " + hunter), "sasl-password-file of profile a: read the file that it names: no such file or directory; it takes a file's name, not the secret"},
		{profile("    sasl: OAUTHBEARER\n    brokers: b\n    sasl-token-env: " + hunter), "sasl-token-env of profile a: the variable"},
		{profile("    sasl: OAUTHBEARER\n    brokers: b\n    sasl-token-file: " + strings.Repeat(hunter, 50)), "sasl-token-file of profile a: read the file"},
		{profile("    sasl-password-env: " + hunter), "sasl-password-env of profile a: the variable"},
		{profile("    sasl-password: *" + hunter), "config.yaml:4: unknown anchor … referenced"},
		{profile("    sasl-password: \"" + hunter), "config.yaml:4: could not find end character of double-quoted text"},
		{profile("    sasl-password: " + hunter + ": x"), "config.yaml:4: mapping value is not allowed in this context"},
		{profile("    sasl-password: !" + hunter + " {"), "config.yaml:4: could not find flow mapping end token …"},
		{profile("    brokers: u:" + hunter + "@host:9092"), "an address has an @"},
		{world{args: []string{"--brokers", "SASL_SSL://u:" + hunter + "@host"}}, "an address has an @"},
	} {
		_, err := c.world.resolve(t)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one that says %q", err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the secret is in the message: %v", err)
		}
	}
}

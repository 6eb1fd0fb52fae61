package connect

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProfile_FilesAreBesideIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "secrets", "p"), "x")
	config := write(t, filepath.Join(folder, "c.yaml"), "profiles:\n  a: {brokers: x, tls: true, sasl: PLAIN, sasl-user: u, sasl-password-file: secrets/p}")
	if _, err := (world{args: []string{"--config", config, "--profile", "a"}}).resolve(t); err != nil {
		t.Error(err)
	}
}

// Somebody who works on one cluster has the password of another one in the environment, too.
func TestProfile_VariablesOfAllProfilesAreSecret(t *testing.T) {
	t.Parallel()
	w := world{args: []string{"--brokers", "k:9092"}, config: "profiles:\n  a:\n    sasl-password-env: A_PASSWORD\n  b:\n    sasl-token-env: B_TOKEN\n"}
	c, err := w.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.SecretVariables)
	if got := strings.Join(c.SecretVariables, " "); got != "A_PASSWORD B_TOKEN SIDING_SASL_PASSWORD SIDING_SASL_TOKEN" {
		t.Error(got)
	}
}

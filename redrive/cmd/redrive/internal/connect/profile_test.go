package connect

import (
	"path/filepath"
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

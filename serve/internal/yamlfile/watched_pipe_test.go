//go:build unix

package yamlfile

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file, or has too many bytes, is refused without being read.
func TestWatched_ReadsNothingThatHasNoEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe.yaml"), filepath.Join(dir, "large.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 17<<20); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		pipe: "pipe.yaml: not a regular file", dir: "not a regular file",
		large: "large.yaml: it has 17825792 bytes, and 16777216 are the most",
	} {
		_, err := Watch(file, func(string, []byte) (int, error) { return 0, nil }, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

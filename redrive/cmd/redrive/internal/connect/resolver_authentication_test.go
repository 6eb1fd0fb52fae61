package connect

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestMechanismOf_ReadsATokenForEachConnection(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "token"), "first\n")
	m := mechanismOf(saslOAuth, "", Secret{value: value{from: "--sasl-token-file"}, file: file})
	for _, want := range []string{"first", "second"} {
		write(t, file, want+"\r\n")
		_, hello, err := m.Authenticate(t.Context(), "broker")
		if err != nil || !strings.Contains(string(hello), "auth=Bearer "+want+"\x01") {
			t.Errorf("it says %q, %v; want the token %s", hello, err, want)
		}
	}
}

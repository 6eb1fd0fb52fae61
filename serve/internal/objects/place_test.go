package objects

import "testing"

// Storage that takes connections and says nothing is given up: it would keep the retentions of
// other topics waiting. The client waits for ever by itself.
func TestNewTransport_GivesUpSilentStorage(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		transport, err := newTransport(secure)
		if err != nil {
			t.Fatal(err)
		}
		if limit := transport.ResponseHeaderTimeout; limit != answerLimit {
			t.Errorf("storage may be silent for %v, want %v", limit, answerLimit)
		}
	}
}

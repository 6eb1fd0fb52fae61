package console

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// flushed is a browser that takes all that comes.
type flushed struct{ *httptest.ResponseRecorder }

func (flushed) FlushError() error { return nil }

// Whoever follows a page hears no more than a request would be answered: a session that is over, a
// token that was withdrawn, and one that has other roles now end the stream. A stream lasts five
// minutes, and went on for them.
func TestConsole_StreamsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age    time.Duration // of the session
		tokens string        // what the file has by then
		ends   bool
	}{
		"nothing happens": {0, "viewer", false},
		"it is over":      {8*time.Hour - 10*time.Second, "viewer", true},
		"withdrawn":       {0, "", true},
		"another role":    {0, "reader", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "tokens.yaml")
				write := func(role string) {
					text := "tokens: []\n"
					if role != "" {
						text = fmt.Sprintf("tokens: [{name: ada, sha256: %x, grants: [{role: %s}]}]\n", sha256.Sum256([]byte("a secret")), role)
					}
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				write("viewer")
				tokens, err := access.ReadTokens(file, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				who, err := access.New(tokens, nil, nil, nil, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				console := openFor(t, who)
				defer console.End()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := httptest.NewRequestWithContext(ctx, "GET", "/audit", nil)
				r.Header.Set("Accept", "text/event-stream")
				signedIn := httptest.NewRecorder()
				if err := console.site.cfg.Browser.WithToken(signedIn, r, "a secret"); err != nil {
					t.Fatal(err)
				}
				r.AddCookie(signedIn.Result().Cookies()[0])
				time.Sleep(c.age)
				done := make(chan struct{})
				go func() {
					defer close(done)
					console.ServeHTTP(flushed{httptest.NewRecorder()}, r)
				}()
				time.Sleep(5 * time.Second)
				write(c.tokens)
				time.Sleep(time.Minute) // two beats: the file is looked at twice
				select {
				case <-done:
					if !c.ends {
						t.Error("the stream ended")
					}
				default:
					if c.ends {
						t.Error("the stream goes on")
					}
				}
			})
		})
	}
}

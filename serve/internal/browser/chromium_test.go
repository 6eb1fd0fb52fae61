package browser

import (
	"context"
	"os"
	"sync"
	"testing"
)

// chromium is the process that all tests share; each tab has cookies of its own.
var chromium struct {
	sync.Mutex
	ctx context.Context
	end func()
}

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// asked skips a test that make browser did not ask for.
func asked(t *testing.T) {
	t.Helper()
	if os.Getenv("SIDING_BROWSER") == "" {
		t.Skip("make browser runs this: it takes Chromium")
	}
}

// sharedChromium returns the context of the shared process, which it starts for the first caller.
func sharedChromium() (_ context.Context, err error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil {
		chromium.ctx, chromium.end, err = StartChromium()
	}
	return chromium.ctx, err
}

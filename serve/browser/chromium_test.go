package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the process that all tests share; each tab has cookies of its own.
var chromium struct {
	sync.Mutex
	ctx context.Context
	end context.CancelFunc
}

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// asked skips a test that nobody asked for.
func asked(t *testing.T) {
	t.Helper()
	if os.Getenv("SIDING_BROWSER") == "" {
		t.Skip("make browser runs this: it takes Chromium")
	}
}

// startChromium starts Chromium, if that was not done yet, and returns its context.
func startChromium() (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx, nil
	}
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	// Without these it asks hosts of its maker's.
	for _, flag := range []string{"disable-quic", "disable-component-update", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root has none
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endBrowser := chromedp.NewContext(ctx)
	chromium.end = func() { endBrowser(); end() }
	if err := chromedp.Do(ctx); err != nil {
		chromium.end()
		return nil, err
	}
	chromium.ctx = ctx
	return ctx, nil
}

func findChromium() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: make browser installs it, or CHROMIUM names one")
}

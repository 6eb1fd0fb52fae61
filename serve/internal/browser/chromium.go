package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// StartChromium starts a Chromium without a window. Tabs are contexts of chromedp below the one
// that it returns; end closes them and ends the process.
func StartChromium() (_ context.Context, end func(), err error) {
	path, err := findChromium()
	if err != nil {
		return nil, nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	// Without these it asks hosts of its maker's.
	for _, flag := range []string{"disable-quic", "disable-component-update", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root has none
	}
	ctx, endProcess := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endTabs := chromedp.NewContext(ctx)
	end = func() { endTabs(); endProcess() }
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return ctx, end, nil
}

func findChromium() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: make browser installs it, or CHROMIUM names one")
}

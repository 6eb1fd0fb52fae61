package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sidingkafka/siding/serve"
)

// Pictures writes those of the documentation into the folder that SIDING_PICTURES names.
func TestPictures_OfTheDocumentation(t *testing.T) {
	dir := os.Getenv("SIDING_PICTURES")
	if dir == "" {
		t.Skip("make pictures runs this")
	}
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/", openInAll) // nothing changes after this
	for _, p := range []struct {
		name, path, shows, scheme string
		width, height             int64
	}{
		{"overview", "/", openInAll, "light", 1280, 420},
		{"incident", "/topics/orders.dlq", openOrders, "light", 1280, 860},
		{"incident-dark", "/topics/orders.dlq", openOrders, "dark", 1280, 860},
		{"incident-phone", "/topics/orders.dlq", openOrders, "light", 360, 740},
		{"letter", "/topics/orders.dlq/letters/0/119", "Dead-lettered", "light", 1280, 860},
		{"audit", "/audit", "OPS-4711", "light", 1280, 360},
	} {
		tb.size(p.width, p.height)
		tb.scheme(p.scheme)
		tb.visit(s, p.path, p.shows)
		tb.live()
		png, err := chromedp.Run(tb.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "console-"+p.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

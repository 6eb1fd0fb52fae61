package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	s := i.serve(serve.Config{RulesFile: ruleFile(t)})
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
		{"plan", "/topics/orders.dlq/redrive?class=http.503", "Sends 90 letters", "light", 1280, 860},
		{"rules", "/rules", "an outage is over", "light", 1280, 420},
		{"audit", "/audit", "OPS-4711", "light", 1280, 360},
	} {
		tb.size(p.width, p.height)
		tb.scheme(p.scheme)
		tb.visit(s, p.path, p.shows)
		tb.live()
		tb.picture(dir, p.name)
	}
	i.repair()
	tb.begin(s, 90, "/topics/orders.dlq?class=http.503", "6")
	tb.size(1280, 700)
	tb.live()
	tb.reads("#live", "full")
	tb.sees(`/ [3-6][0-9] of 90 sent/.test(document.querySelector('#live').innerText)`)
	tb.picture(dir, "run")
}

// picture writes what the window shows into a file of the documentation.
func (tb *tab) picture(dir, name string) {
	tb.t.Helper()
	shot, err := chromedp.Run(tb.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tb.t.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		tb.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(whole)); err != nil {
		tb.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "console-"+name+".png"), out.Bytes(), 0o644); err != nil {
		tb.t.Fatal(err)
	}
}

// paletted returns a picture in 256 colors, which more than halves its file: the most frequent
// ones, but none that looks like another.
func paletted(whole image.Image) *image.Paletted {
	counts := map[color.Color]int{}
	in := whole.Bounds()
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			counts[whole.At(x, y)]++
		}
	}
	var colors color.Palette
	for _, c := range slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) }) {
		if len(colors) < 256 && (len(colors) == 0 || !alike(c, colors.Convert(c))) {
			colors = append(colors, c)
		}
	}
	out := image.NewPaletted(in, colors)
	draw.Draw(out, in, whole, in.Min, draw.Src)
	return out
}

// alike reports whether two colors are nearly the same.
func alike(a, b color.Color) bool {
	const most = 10 * 0x101
	near := func(x, y uint32) bool { return max(x, y)-min(x, y) < most }
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	return near(r1, r2) && near(g1, g2) && near(b1, b2)
}

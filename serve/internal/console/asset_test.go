package console

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Files of other projects are those that SHA256SUMS names, each with its licence.
func TestAssets_AreThoseThatWerePinned(t *testing.T) {
	t.Parallel()
	sums, err := os.Open("static/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	pinned := map[string]string{}
	for lines := bufio.NewScanner(sums); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		pinned[name] = sum
	}
	files := os.DirFS("static")
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name, "/") {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if sum := sha256.Sum256(content); err == nil && pinned[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("static/%s is not what SHA256SUMS pins", name)
		}
		folder, _, _ := strings.Cut(name, "/")
		if _, missing := fs.Stat(files, folder+"/LICENSE"); missing != nil {
			t.Errorf("static/%s has no LICENSE", folder)
		}
		delete(pinned, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range pinned {
		t.Errorf("static/%s is missing", name)
	}
}

// Browsers keep a file for ever, by an address that changes with it.
func TestAssets_AreKeptByBrowsers(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, n := range parse(t, ask(c, "/").Body) {
		path := attr(n, "src")
		if n.Data == "link" {
			path = attr(n, "href")
		}
		if path == "" {
			continue
		}
		w := ask(c, path)
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
	}
	for path, want := range map[string]int{"/static/console.css": 200, "/static/nothing.css": 404, "/static/SHA256SUMS": 404, "/static/htmx/LICENSE": 404, "/static/": 404} {
		if w := ask(c, path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

var token = regexp.MustCompile(`--([a-z0-9]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`)

// luminance is that of WCAG 2.
func luminance(color string) float64 {
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(color[2*i:2*i+2], 16, 8)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Texts have a contrast of 4.5 to what is behind them, borders and pictures 3, by day and by night.
func TestAssets_HaveContrast(t *testing.T) {
	t.Parallel()
	css := string(assets["console.css"].content)
	tokens := map[string][2]string{}
	for _, m := range token.FindAllStringSubmatch(css, -1) {
		tokens[m[1]] = [2]string{m[2], m[3]}
	}
	check := func(name, behind string, least float64) {
		a, ok := tokens[name]
		b, ok2 := tokens[behind]
		if !ok || !ok2 {
			t.Fatalf("there is no token %s or %s", name, behind)
		}
		for i, scheme := range []string{"light", "dark"} {
			if got := contrast(a[i], b[i]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", scheme, name, behind, got, least)
			}
		}
	}
	for _, behind := range []string{"paper", "field"} {
		for _, name := range []string{"ink", "soft", "accent", "red", "good"} {
			check(name, behind, 4.5)
		}
		check("line", behind, 2.5)
		for i := range mostSeries + 1 {
			check(fmt.Sprintf("s%d", i), behind, 3)
		}
	}
	check("line", "paper", 3)
	// Colors stand in the tokens alone.
	for i, line := range strings.Split(css, "\n") {
		if strings.Contains(line, "#") && !token.MatchString(line) {
			t.Errorf("console.css:%d has a color of its own: %s", i+1, line)
		}
	}
	var used []string
	for _, m := range regexp.MustCompile(`var\(--([a-z0-9]+)\)`).FindAllStringSubmatch(css, -1) {
		if _, ok := tokens[m[1]]; !ok && !slices.Contains([]string{"sans", "mono"}, m[1]) {
			used = append(used, m[1])
		}
	}
	if len(used) > 0 {
		t.Errorf("console.css uses tokens that are missing: %v", used)
	}
}

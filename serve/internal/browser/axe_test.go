package browser

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"testing"
)

//go:embed axe
var axeFiles embed.FS

var axeScript = sync.OnceValues(func() (string, error) {
	packed, err := axeFiles.ReadFile("axe/axe.min.js.gz")
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
})

// The files of axe-core are those that were pinned, with their licences.
func TestAxe_IsTheOneThatWasPinned(t *testing.T) {
	t.Parallel()
	sums, err := axeFiles.ReadFile("axe/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	pinned := 0
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); pinned++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		content, err := axeFiles.ReadFile("axe/" + name)
		if got := sha256.Sum256(content); err != nil || hex.EncodeToString(got[:]) != want {
			t.Errorf("axe/%s is not what SHA256SUMS pins: %v", name, err)
		}
	}
	if pinned != 3 {
		t.Errorf("%d files are pinned, want the script and two licences", pinned)
	}
	if text, err := axeScript(); err != nil || !strings.Contains(text, "axe v4.14.1") {
		t.Errorf("the script is another one: %v", err)
	}
}

// check reports what axe-core finds on the page, and whether the page scrolls sideways.
func (tb *tab) check(name string) {
	tb.t.Helper()
	if !eval[bool](tb, "Boolean(window.axe)") {
		script, err := axeScript()
		if err != nil {
			tb.t.Fatal(err)
		}
		tb.run(script)
	}
	for _, found := range eval[[]string](tb, `axe.run(document, {resultTypes: ['violations']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + v.help + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)))`) {
		tb.t.Errorf("%s: axe: %s", name, found)
	}
	for _, wide := range eval[[]string](tb, `(() => {
		const most = document.documentElement.clientWidth
		if (document.documentElement.scrollWidth <= most) return []
		return Array.from(document.querySelectorAll('body *')).filter((e) => e.getBoundingClientRect().right > most + 0.5).map((e) => e.outerHTML.slice(0, 120)).concat('')
	})()`) {
		tb.t.Errorf("%s: the page scrolls sideways, by %s", name, wide)
	}
}

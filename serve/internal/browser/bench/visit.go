package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sidingkafka/siding/serve/internal/browser"
)

// visitTime is how long a page may take until it is usable, before the measurement is given up.
const visitTime = 30 * time.Second

// usable opens the first page of a topic in a Chromium, again and again, and returns how long it
// took until a user could work with it.
func (s *scene) usable(ctx context.Context, visits int) (figure, error) {
	chromium, end, err := browser.StartChromium()
	if err != nil {
		return figure{}, err
	}
	defer end()
	var took, ready []time.Duration
	// A page loads files and a stream, and the server answers 50 requests a second of one sender.
	for i, tick := 0, time.Tick(250*time.Millisecond); i < visits; i++ {
		select {
		case <-ctx.Done():
			return figure{}, context.Cause(ctx)
		case <-tick:
		}
		v, err := visit(chromium, s.child.address+s.page(i))
		if err != nil {
			return figure{}, fmt.Errorf("a page in Chromium: %w", err)
		}
		if want := s.rows(i); v.rows != want {
			return figure{}, fmt.Errorf("a page in Chromium shows %d letters, want %d", v.rows, want)
		}
		took, ready = append(took, v.took), append(ready, v.ready)
	}
	return figure{"usable page", ms(percentile(took, 95)), 1000, "ms p95", fmt.Sprintf("median %.0f ms, its DOM ready after %.0f ms, in %d new profiles of Chromium, of %d letters in a topic", ms(percentile(took, 50)), ms(percentile(ready, 50)), visits, s.letters)}, nil
}

// visited is what a visit saw: after which time the page was usable, after which its DOM was ready
// by the browser's own account, and how many letters it showed.
type visited struct {
	took, ready time.Duration
	rows        int
}

// visit opens a page in a profile of its own, so nothing of it is in a cache. The page is usable
// when it is loaded, shows its letters, has obeyed the key that goes to the first row, and the
// browser has drawn that. The time includes what the driver takes.
func visit(chromium context.Context, url string) (v visited, err error) {
	ctx, closeTab := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil { // opens the tab
		return v, err
	}
	began := time.Now()
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.KeyEvent("j")); err != nil {
		return v, err
	}
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[[2]float64](`new Promise((done) => {
		const shown = () => [
			Array.from(document.querySelectorAll('[id^="letter-"]')).filter((e) => e.checkVisibility()).length,
			performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd,
		]
		const look = () => requestAnimationFrame(document.readyState === 'complete' && document.activeElement.closest('[data-row]')
			? () => setTimeout(() => done(shown())) // a frame was drawn
			: look)
		look()
	})`, chromedp.EvalAwaitPromise))
	return visited{time.Since(began), time.Duration(seen[1] * float64(time.Millisecond)), int(seen[0])}, err
}

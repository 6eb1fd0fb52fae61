package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a page may take to show what a test waits for.
const patience = 30 * time.Second

// tab is a page in a browser of its own, as far as cookies are concerned. What the browser
// complains about fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu sync.Mutex
	// lenient is true while the server is away, or answers with an error on purpose: the browser
	// reports each request that failed.
	lenient bool
	faults  []string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	asked(t)
	all, err := sharedChromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(all, chromedp.WithNewBrowserContext())
	tb := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			if text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText.slice(0, 2000)")); err == nil {
				t.Logf("the page:\n%s", text)
			}
		}
		end()
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, f := range tb.faults {
			t.Error(f)
		}
	})
	if err := chromedp.Listen(ctx, tb.observe); err != nil { // begins the tab
		t.Fatal(err)
	}
	tb.do(command(audits.Enable, cdp.Empty{}))
	tb.size(1280, 800)
	return tb
}

// observe keeps what the browser complains about: exceptions, messages of scripts, files that are
// missing, and what the content security policy forbids.
func (tb *tab) observe(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		tb.faults = append(tb.faults, "exception: "+(&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		var text []string
		for _, a := range e.Args {
			text = append(text, string(a.Value))
		}
		said := strings.Join(text, " ")
		// A filter that is typed on aborts the request before it. htmx calls that an error.
		if !strings.Contains(said, "htmx:sendAbort") && !strings.Contains(said, "htmx:afterRequest") {
			tb.faults = append(tb.faults, fmt.Sprintf("console.%s: %s", e.Type, said))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelVerbose && (!tb.lenient || e.Entry.Source != log.EntrySourceNetwork) {
			tb.faults = append(tb.faults, fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details; d != nil && d.ContentSecurityPolicyIssueDetails != nil {
			tb.faults = append(tb.faults, fmt.Sprintf("content security policy: %s forbids %s", d.ContentSecurityPolicyIssueDetails.ViolatedDirective, d.ContentSecurityPolicyIssueDetails.BlockedURL))
		}
	}
}

// forgive says whether requests may fail from now on.
func (tb *tab) forgive(lenient bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.lenient = lenient
}

// step is what a tab does.
type step = chromedp.Action[chromedp.Void]

// command is a command of the protocol as a step.
func command[P any](c cdp.Command[P, cdp.Empty], params P) step {
	return chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, c, params)
		return err
	})
}

func (tb *tab) do(steps ...step) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// abort clicks the button of the one run that goes on. Its card may just be replaced by a new one.
func (tb *tab) abort() {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	for {
		err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#runs form button")))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "node") {
			tb.t.Fatal(err)
		}
	}
}

// open loads a page. It is there when its scripts have run.
func (tb *tab) open(url string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(url))
	tb.sees("document.readyState === 'complete'")
}

// size sets the size of the window.
func (tb *tab) size(width, height int64) {
	tb.t.Helper()
	tb.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}))
}

// scheme sets what the system prefers, light or dark.
func (tb *tab) scheme(name string) {
	tb.t.Helper()
	tb.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}

// eval returns the value of an expression.
func eval[T any](tb *tab, js string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatal(err)
	}
	return value
}

// run runs a script in the page.
func (tb *tab) run(js string) {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](js))
}

// leave runs a script that leaves the page, once this call is over: the browser answers nothing for
// a page that is gone.
func (tb *tab) leave(js string) {
	tb.t.Helper()
	tb.run("setTimeout(() => { " + js + " })")
}

// sees waits until an expression is true. An exception, or a page that goes away, is not yet.
func (tb *tab) sees(js string) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && is {
			return
		}
		select {
		case <-ctx.Done():
			tb.t.Fatalf("after %v: not %s", patience, js)
		case <-tick.C:
		}
	}
}

// reads waits until an element has a text.
func (tb *tab) reads(selector, text string) {
	tb.t.Helper()
	tb.sees(fmt.Sprintf("document.querySelector(%q).innerText.includes(%q)", selector, text))
}

// live waits until the page follows what happens.
func (tb *tab) live() {
	tb.t.Helper()
	tb.reads("#status", "Live.")
}

// at waits until the address has a path, and whatever is written behind it.
func (tb *tab) at(path string) {
	tb.t.Helper()
	tb.sees(fmt.Sprintf("document.readyState === 'complete' && decodeURIComponent(location.pathname + location.search).startsWith(%q)", path))
}

// press presses keys, one after the other, as a keyboard does: what a page prevents at keydown is
// not typed.
func (tb *tab) press(keys string) {
	tb.t.Helper()
	for _, r := range keys {
		k := kb.Keys[r]
		p := input.DispatchKeyEventParams{Type: "rawKeyDown", Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows}
		if k.Shift {
			p.Modifiers = int64(chromedp.ModifierShift)
		}
		if k.Print {
			p.Type, p.Text, p.UnmodifiedText = "keyDown", k.Text, k.Unmodified
		}
		up := p
		up.Type, up.Text, up.UnmodifiedText = "keyUp", "", ""
		tb.do(command(input.DispatchKeyEvent, p), command(input.DispatchKeyEvent, up))
	}
}

// focus waits until an element has the focus.
func (tb *tab) focus(selector string) {
	tb.t.Helper()
	tb.sees(fmt.Sprintf("document.activeElement.matches(%q)", selector))
}

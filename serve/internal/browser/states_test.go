package browser

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/serve"
)

// stateShot is a picture of a page in a state in which it has nothing to show, or not all.
type stateShot struct {
	name string
	png  []byte
}

// states brings about each state, has a look at it, and returns pictures of all.
type states struct {
	*tab
	shots []stateShot
}

// see waits until a page says what it has to in a state, checks it and takes its picture. What
// those pages have in common is checked in all widths and schemes elsewhere.
func (s *states) see(name, selector, text string) {
	s.t.Helper()
	s.reads(selector, text)
	s.scheme("dark")
	s.size(360, 800)
	// What is not confirmed is dimmed on purpose.
	if !eval[bool](s.tab, "document.body.classList.contains('lost')") {
		s.check(name)
	}
	s.scheme("light")
	s.size(640, 420)
	s.run(fmt.Sprintf(`(() => {
		const all = Array.from(document.querySelectorAll('main p')).filter((e) => e.innerText.includes(%q))
		if (all.length > 0) all[0].scrollIntoView({block: 'center', behavior: 'instant'})
	})()`, text))
	shot, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		s.t.Fatal(err)
	}
	s.shots = append(s.shots, stateShot{name, shot})
}

// page opens a page and sees its state.
func (s *states) page(on *server, name, path, text string) {
	s.t.Helper()
	s.open(on.at(path))
	s.see(name, "body", text)
}

// mutable is a cluster whose brokers can fall silent: to fetches, or to all requests.
type mutable struct{ fetches, all atomic.Bool }

// cluster starts the brokers, with topics of three partitions.
func (m *mutable) cluster(t *testing.T, topics ...string) []kgo.Opt {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, m.all.Load() || m.fetches.Load() && r.Key() == int16(kmsg.Fetch)
	})
	return []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}
}

// lettersOn returns an incident of a few letters on brokers, without a service.
func lettersOn(t *testing.T, kafka []kgo.Opt) *incident {
	t.Helper()
	i := &incident{t: t, kafka: kafka}
	var err error
	if i.cl, err = kgo.NewClient(append(kafka, kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.cl.Close)
	for range 6 {
		i.letter("orders", "tax.TableMiss", "no rate for region N7", "2.3.1", time.Now().Add(-time.Hour))
	}
	return i
}

// lookAtStates returns pictures of pages that have nothing to show, or not all.
func lookAtStates(t *testing.T) *states {
	t.Helper()
	asked(t)
	s := &states{tab: newTab(t)}
	s.forgive(true) // refusals are errors to the browser
	nothing := &incident{t: t, kafka: new(mutable).cluster(t)}
	on := nothing.serve(serve.Config{})
	s.page(on, "topics: none", "/", "nothing to see")
	s.page(on, "runs: none", "/runs", "no runs yet")
	s.page(on, "rules: none", "/rules", "A rule brings letters back by itself")
	s.page(on, "audit: nothing", "/audit", "no decisions yet")

	var kafka mutable
	i := lettersOn(t, kafka.cluster(t, "orders", "orders.dlq", "orders.dlq.ledger", "mails", "mails.dlq", "mails.dlq.ledger"))
	kafka.fetches.Store(true)
	on = i.serve(serve.Config{})
	s.page(on, "topics: being read", "/", "to read")
	s.page(on, "topic: being read", "/topics/orders.dlq", "Nothing was read yet")
	kafka.fetches.Store(false)
	s.visit(on, "/topics/orders.dlq", "6 open")
	s.page(on, "topic: no letters", "/topics/mails.dlq", "No open letters.")
	s.page(on, "topic: the filter fits none", "/topics/orders.dlq?class=nothing", "No open letter matches the filter")
	s.page(on, "topic: no such one", "/topics/other.dlq", "There is no dead-letter topic")
	s.page(on, "letter: no such one", "/topics/orders.dlq/letters/0/99999", "no letter")
	s.page(on, "plan: refused", "/topics/orders.dlq/redrive?class=nothing", "no open letter fits")
	s.page(on, "run: no such one", "/topics/orders.dlq/runs/none", "there is no such run")

	viewed := i.serve(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, "viewer", "anna")}})
	s.page(viewed, "sign-in", "/", "Sign in")
	s.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	s.see("sign-in: refused", "main", "nobody has this token")
	s.do(chromedp.SendKeys(chromedp.CSS("#token"), "of anna\r"))
	s.reads(".who", "anna")
	s.visit(viewed, "/topics/orders.dlq", "6 open")
	s.page(viewed, "topic: of a viewer", "/topics/orders.dlq", "takes the role operator")
	s.page(viewed, "letter: of a viewer", "/topics/orders.dlq/letters/0/0", "for the role reader")
	s.page(viewed, "discard: of a viewer", "/topics/orders.dlq/discard", "takes the role operator")

	fresh := i.serve(serve.Config{}) // it has shown no letter yet
	s.visit(fresh, "/", "6 open in 1 topic")
	kafka.all.Store(true)
	s.page(fresh, "topic: its letters are not read", "/topics/orders.dlq", "was not read")
	s.page(on, "letter: the brokers are silent", "/topics/orders.dlq/letters/0/0", "did not answer")
	s.open(on.at("/topics/orders.dlq"))
	s.see("topic: the brokers are silent", "#runs", "The brokers do not answer")
	s.open(on.at("/topics/orders.dlq"))
	s.live()
	on.stop()
	s.see("topic: the server is away", "#status", "The connection is lost")
	kafka.all.Store(false)
	return s
}

// Each page says what it is in a state in which it has nothing to show, or not all; and it is
// without findings of axe-core then.
func TestStates_AreSaidOnEachPage(t *testing.T) {
	s := lookAtStates(t)
	for _, shot := range s.shots {
		if len(shot.png) < 2000 {
			t.Errorf("%s: the picture is empty", shot.name)
		}
	}
}

// Pictures has one of all states beside each other.
func TestPictures_OfTheStates(t *testing.T) {
	dir := os.Getenv("SIDING_PICTURES")
	if dir == "" {
		t.Skip("make pictures runs this")
	}
	s := lookAtStates(t)
	var b strings.Builder
	b.WriteString(`<!doctype html><style>body{margin:16px;display:grid;grid-template-columns:repeat(4,1fr);gap:16px;font:14px sans-serif}figure{margin:0}img{width:100%;border:1px solid #8c959f}</style>`)
	for _, shot := range s.shots {
		fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><img src="data:image/png;base64,%s"></figure>`, shot.name, base64.StdEncoding.EncodeToString(shot.png))
	}
	file := t.TempDir() + "/states.html"
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.open("file://" + file)
	s.size(1600, eval[int64](s.tab, "document.documentElement.scrollHeight"))
	s.size(1600, eval[int64](s.tab, "document.documentElement.scrollHeight"))
	s.picture(dir, "states")
}

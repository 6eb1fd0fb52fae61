package roottest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root"
)

// A Night is an incident in virtual time, and what an operator does about it.
type Night struct {
	*demo.Incident
	t    *testing.T
	dial func(ctx context.Context, network, host string) (net.Conn, error)

	mu  sync.Mutex
	ids []string // of runs, in the order in which they are seen
}

// NewNight starts an incident on a network in memory.
func NewNight(t *testing.T, bugs ...demo.Bug) *Night {
	var network kfake.VirtualNetwork
	n := &Night{t: t, dial: network.DialContext}
	var err error
	// An idle consumer that fetches four times a second costs most of the CPU of a virtual hour.
	n.Incident, err = demo.StartIncidentOn([]kfake.Opt{kfake.ListenFn(network.Listen), kfake.Ports(9092)}, []kgo.Opt{kgo.Dialer(network.DialContext), kgo.DisableClientMetrics(), kgo.FetchMaxWait(5 * time.Second)}, bugs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	bubble.Recode(n.Cluster)
	return n
}

// FailedNight is NewNight whose records are dead letters.
func FailedNight(t *testing.T, bugs ...demo.Bug) *Night {
	n := NewNight(t, bugs...)
	if _, err := n.Fail(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// Begin produces the records within half an hour, until all are dead letters.
func (n *Night) Begin() {
	const waves = 30
	made := 0
	for wave := range waves {
		var records []*kgo.Record
		for _, b := range n.Bugs {
			for range b.Records*(wave+1)/waves - b.Records*wave/waves {
				records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "order-%d", made), Value: []byte(b.Class)})
				made++
			}
		}
		if err := n.Producer.ProduceSync(n.t.Context(), records...).FirstErr(); err != nil {
			n.t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	<-n.Failed
}

// A step is a line of the page, or a command with what it prints.
type step struct {
	text      string
	command   string
	does      []string // what else happens, as verb and object
	typed     string   // to the command's question
	code      int      // the exit code
	meanwhile string   // the words of the command before it from which on it runs beside that one
}

var directive = regexp.MustCompile(`^<!-- night: (fix|wait|types|exits|meanwhile) (.+) -->\n$`)

// steps reads the page. Comments have what else happens: "fix CLASS" and "wait DURATION" do it;
// "types TEXT", "exits CODE" and "meanwhile WORDS" are about the next command.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	var next step
	for line := range strings.Lines(page) {
		command, is := strings.CutPrefix(line, "    $ redrive ")
		about := directive.FindStringSubmatch(line)
		switch printed := len(all) > 0 && all[len(all)-1].command != "" && (line == "\n" || strings.HasPrefix(line, "    ")); {
		case is:
			next.command = strings.TrimSpace(command)
			all, next = append(all, next), step{}
		case printed: // by the former version
		case about == nil:
			if strings.Contains(line, "<!--") {
				t.Errorf("the page has %q, which means nothing", line)
			}
			all = append(all, step{text: line})
		default:
			all = append(all, step{text: line})
			switch about[1] {
			case "types":
				next.typed = about[2] + "\n"
			case "exits":
				next.code, _ = strconv.Atoi(about[2])
			case "meanwhile":
				next.meanwhile = about[2]
			default:
				all[len(all)-1].does = about[1:]
			}
		}
	}
	return all
}

// Play runs the commands of a page, and returns the page with what they print now.
func (n *Night) Play(page string) string {
	var played strings.Builder
	all := steps(n.t, page)
	beside := map[int]<-chan string{} // commands that run already
	for i, s := range all {
		if s.command == "" {
			played.WriteString(s.text)
			n.do(s.does)
			continue
		}
		printed, runs := beside[i]
		if !runs {
			began := make(chan string, 1)
			if next := i + 1 + slices.IndexFunc(all[i+1:], func(s step) bool { return s.command != "" }); next > i && all[next].meanwhile != "" {
				other := make(chan string, 1)
				beside[next] = other
				began <- n.run(s, all[next].meanwhile, func() { other <- n.run(all[next], "", nil) })
			} else {
				began <- n.run(s, "", nil)
			}
			printed = began
		}
		output := <-printed
		command := n.stable(s.command)
		played.WriteString("    $ redrive " + command + "\n" + indented(output) + "\n")
	}
	return played.String()
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func (n *Night) do(directive []string) {
	switch {
	case directive == nil:
	case directive[0] == "fix":
		if !n.IsBroken(directive[1]) {
			n.t.Errorf("there is no bug %s to be fixed", directive[1])
		}
		n.Fix(directive[1])
	case directive[0] == "wait":
		d, err := time.ParseDuration(directive[1])
		if err != nil {
			n.t.Error(err)
		}
		time.Sleep(d)
	}
}

// run runs a command, and returns what it prints. Once it has printed some words, it begins another
// one.
func (n *Night) run(s step, words string, begin func()) string {
	var mu sync.Mutex
	var all bytes.Buffer
	var others sync.WaitGroup
	defer others.Wait()
	add := func(text []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		all.Write(text)
		if begin != nil && strings.Contains(all.String(), words) {
			n.stable(all.String()) // so that the other knows the run's id
			beside := begin
			others.Go(func() {
				// By then the ledger has the state that the words announce.
				time.Sleep(30 * time.Millisecond)
				beside()
			})
			begin = nil
		}
		return len(text), nil
	}
	var args []string
	for _, arg := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(n.real(s.command), -1) {
		args = append(args, strings.Trim(arg, `'"`))
	}
	p := n.process(writer(add))
	if i := slices.Index(args, ">"); i >= 0 { // its output goes to a file
		args, p.Stdout = args[:i], io.Discard
	}
	if s.typed != "" {
		typed := strings.NewReader(s.typed)
		p.Stdin = reader(func(b []byte) (int, error) {
			_, _ = add([]byte(s.typed)) // a terminal shows it
			return typed.Read(b)
		})
	}
	if code := root.Run(n.t.Context(), p, args); code != s.code {
		n.t.Errorf("redrive %s: exit code %d, want %d:\n%s", s.command, code, s.code, all.String())
	}
	mu.Lock()
	defer mu.Unlock()
	if begin != nil {
		n.t.Errorf("redrive %s did not print %q:\n%s", s.command, words, all.String())
	}
	return n.stable(all.String())
}

// process is what a command of the night gets from the operating system.
func (n *Night) process(out io.Writer) cli.Process {
	return cli.Process{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: out, User: "ada",
		Now: func() time.Time { return time.Now().UTC() },
		Env: connect.Environment{Dial: n.dial, Getenv: func(name string) string { return map[string]string{"SIDING_BROKERS": n.Address}[name] }},
	}
}

// Invoke runs a command, and returns its exit code.
func (n *Night) Invoke(ctx context.Context, out io.Writer, args ...string) int {
	return root.Run(ctx, n.process(out), args)
}

// OnlyRun is the only run of the night, as the ledger has it.
func (n *Night) OnlyRun() redrive.Outcome {
	n.t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: []kgo.Opt{kgo.SeedBrokers(n.Address), kgo.Dialer(n.dial)}})
	if err != nil {
		n.t.Fatal(err)
	}
	runs, err := r.Runs(n.t.Context(), "orders.dlq")
	if err != nil || len(runs) != 1 {
		n.t.Fatal(runs, err)
	}
	return runs[0]
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

var (
	runID    = regexp.MustCompile(`(\d{8}-\d{6})-[0-9a-f]{6}`)
	stableID = regexp.MustCompile(`\d{8}-\d{6}-0000(\d\d)`)
	owner    = regexp.MustCompile(` on \S+, process \d+`)
	host     = regexp.MustCompile(`(?m)(^HOST +|;host=|first on )[^;,\n]*`)
	topicID  = regexp.MustCompile(`(;id=)[^;]*`)
)

// stable replaces what differs each time: random ids of runs by their numbers, the host and the
// process.
func (n *Night) stable(text string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text = runID.ReplaceAllStringFunc(text, func(id string) string {
		if stableID.MatchString(id) {
			return id
		}
		at := slices.Index(n.ids, id)
		if at < 0 {
			at, n.ids = len(n.ids), append(n.ids, id)
		}
		return fmt.Sprintf("%s-%06d", id[:15], at+1)
	})
	text = owner.ReplaceAllString(text, " on laptop, process 4711")
	text = host.ReplaceAllString(text, "${1}orders-7")
	return topicID.ReplaceAllString(text, "${1}Bes7HW76YNP2Lo-gdgnRew")
}

// real puts the runs' ids into a command of the page.
func (n *Night) real(command string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return stableID.ReplaceAllStringFunc(command, func(id string) string {
		number, _ := strconv.Atoi(id[16:])
		if number < 1 || number > len(n.ids) {
			n.t.Errorf("redrive %s: there was no run of this number", command)
			return id
		}
		return n.ids[number-1]
	})
}

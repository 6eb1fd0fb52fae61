package integration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// The number of kills, and how to repeat one. The seed determines the moments of the kills, but the
// progress of a machine at a moment varies.
const (
	killsEnv   = "SIDING_KILLS"        // as "kafka=20,embedded=180"; default: defaultKills
	seedEnv    = "SIDING_KILL_SEED"    // the first run's; each further run has the next
	resultsEnv = "SIDING_KILL_RESULTS" // file for seeds and results, JSON lines; default: none

	defaultKills = "kafka=5,embedded=2" // once in each phase; make soak has 200
)

// An operator kills a process, or a machine dies: a resumed run completes as if nothing had
// happened.
func TestARunThatIsKilledGoesOnAndDoublesNothing(t *testing.T) {
	t.Parallel()
	binary(t)
	seed := uint64(time.Now().UnixNano()) % 1e9
	if s := os.Getenv(seedEnv); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	log := newKillLog(t)
	sites := map[string]func(*testing.T) *site{"kafka": onKafka, "embedded": onEmbedded}
	for kind, n := range killsWanted(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, seed uint64) {
				t.Helper()
				v := newVictim(sites[kind](t), kind, seed)
				defer func() { log.add(v, t.Failed()) }()
				defer func() {
					if t.Failed() {
						t.Logf("the same again: cd integration && %s=%s=1 %s=%d go test . -count=1 -run '^%s$/^%s$'", killsEnv, kind, seedEnv, v.Seed, strings.SplitN(t.Name(), "/", 2)[0], kind)
					}
				}()
				v.liveAndDie()
				v.verify()
			}
			t.Run("runs", func(t *testing.T) {
				for i := range n {
					t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) {
						t.Parallel()
						run(t, seed+uint64(i))
					})
				}
			})
			// A process may end before its kill, so runs follow until there was one in each phase.
			for further := seed + uint64(n); n >= 2*len(phases) && !t.Failed(); further++ {
				missing := log.missing(kind)
				if len(missing) == 0 {
					return
				}
				if further > seed+uint64(10*n) {
					t.Fatalf("on %s no run was killed in its phases %q", kind, missing)
				}
				if slices.Contains(missing, phaseOf(further, 0)) {
					t.Run(fmt.Sprint(further), func(t *testing.T) { run(t, further) })
				}
			}
		})
	}
}

// killsWanted returns the number of runs by kind of broker.
func killsWanted(t *testing.T) map[string]int {
	t.Helper()
	spec := os.Getenv(killsEnv)
	if spec == "" {
		spec = defaultKills
	}
	wanted := map[string]int{}
	for part := range strings.SplitSeq(spec, ",") {
		kind, n, _ := strings.Cut(part, "=")
		count, err := strconv.Atoi(n)
		if err != nil || kind != "kafka" && kind != "embedded" {
			t.Fatalf("%s: %q is not kafka=N or embedded=N", killsEnv, part)
		}
		wanted[kind] = count
	}
	return wanted
}

// The phases of a run in which it is killed, equally often.
var phases = []string{"claim", "canary", "sending", "window", "conclude"}

// phaseOf returns the phase in which a run is killed, for the first time or a later one.
func phaseOf(seed uint64, turn int) string { return phases[(int(seed)+turn)%len(phases)] }

// begun are the words that show in the program's output that a phase has begun; words of a later
// phase show it too. A claim begins with the process.
var begun = map[string][]string{
	"canary":   {"canary:", "sending\n", "all is sent"},
	"sending":  {"sending\n", "all is sent"},
	"window":   {"all is sent"},
	"conclude": {"all is sent"},
}

const killWindow = 1500 * time.Millisecond

// victim is a run that is killed.
type victim struct {
	*site
	report
	service *service
	rnd     *rand.Rand
	kills   int // kills left
	began   time.Time
	topic   string
	args    []string
	run     string // topic/id, once it is known
}

// report describes a victim at its end.
type report struct {
	Seed    uint64   `json:"seed"`
	Broker  string   `json:"broker"`
	Letters int      `json:"letters"`
	Rate    int      `json:"rate"`
	Target  string   `json:"target"`
	Kills   []death  `json:"kills"`
	Took    string   `json:"took"`
	Ended   []string `json:"ended"` // the end of each process
	Failed  bool     `json:"failed"`
}

// death is one kill of a victim.
type death struct {
	Phase   string        `json:"phase"`   // intended phase
	After   string        `json:"after"`   // since the phase began
	Found   redrive.State `json:"found"`   // in the ledger after it; "" without a claim
	Entries int           `json:"entries"` // letters with an entry in the ledger then
	Alive   bool          `json:"alive"`   // false: the process had ended before
}

func newVictim(s *site, kind string, seed uint64) *victim {
	s.t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	v := &victim{site: s, report: report{Seed: seed, Broker: kind}, rnd: rnd, began: time.Now(), topic: topicName(s.t)}
	v.Letters, v.kills = 200+rnd.IntN(400), 1+rnd.IntN(3)
	v.Rate = []int{0, 200, 500, 2000}[rnd.IntN(4)]
	partitions := int32(1 + rnd.IntN(4))
	v.Target = v.topic + ".retry.1s"
	v.args = []string{"--rate", fmt.Sprint(v.Rate), "--canary", fmt.Sprint(1 + 9*rnd.IntN(2)), "--ramp", "0", "--window", killWindow.String()}
	if rnd.IntN(4) == 0 {
		v.Target = v.topic
		v.args = append(v.args, "--target", v.topic)
	}
	v.CreateTopic(v.topic, partitions)
	v.service = v.deploy(v.topic, v.topic, time.Second)
	v.incident(v.topic, "order", v.Letters)
	v.service.fixed()
	return v
}

// liveAndDie starts the run, kills it, resumes it, and so on, until it is done.
func (v *victim) liveAndDie() {
	v.t.Helper()
	for turn := 0; ; turn++ {
		if turn == 10 {
			v.t.Fatal("it does not come to an end")
		}
		args := append([]string{"run", v.topic + ".dlq", "--yes"}, v.args...)
		switch state, _ := v.find(); state {
		case "":
		case redrive.Done:
			v.Took = time.Since(v.began).Round(time.Millisecond).String()
			return
		case redrive.Aborted:
			v.t.Fatal("it aborted itself")
		default:
			args = []string{"resume", v.run, "--yes"}
		}
		began := time.Now()
		p := v.begin(args...)
		if turn < v.kills {
			v.kill(p, turn)
		}
		switch code, out := p.end(), p.output(); {
		case code == -1, code == 0:
		// The process was killed while the transaction with the claim, or with the end, was being
		// committed.
		case code == 4 && strings.Contains(out, "unfinished run"), code == 1 && strings.Contains(out, "it cannot be resumed"):
		default:
			v.t.Fatalf("%s ended with code %d, and prints\n%s", p, code, out)
		}
		v.Ended = append(v.Ended, fmt.Sprintf("%s: %d after %v", p.Args[1], p.code, time.Since(began).Round(time.Millisecond)))
	}
}

// find reads the run and the number of letters with an entry from the ledger, as a committed reader
// sees them now. To read the ledger to its end would take until the open transaction ends, but the
// run is to be resumed at once.
func (v *victim) find() (state redrive.State, letters int) {
	v.t.Helper()
	known := map[string]bool{}
	for _, r := range v.read(v.topic+".dlq.ledger", kgo.ReadCommitted()) {
		name, ok := strings.CutPrefix(string(r.Key), "run/")
		switch {
		case r.Attrs.IsControl(), strings.Contains(name, "/"):
			continue
		case !ok:
			known[fmt.Sprintf("%d/%s", r.Partition, name)] = true
			continue
		}
		var run struct {
			State redrive.State `json:"state"`
		}
		must(v.t, json.Unmarshal(r.Value, &run))
		if v.run != "" && v.run != v.topic+".dlq/"+name {
			v.t.Fatalf("there is another run besides %s: %s", v.run, name)
		}
		v.run, state = v.topic+".dlq/"+name, run.State
	}
	return state, len(known)
}

// kill kills a process some time after a phase of the run began.
func (v *victim) kill(p *process, turn int) {
	v.t.Helper()
	phase := phaseOf(v.Seed, turn)
	window := map[string]time.Duration{
		"claim": 600 * time.Millisecond, "canary": time.Second, "window": killWindow, "conclude": 400 * time.Millisecond,
		"sending": 300 * time.Millisecond,
	}[phase]
	if phase == "sending" && v.Rate > 0 {
		window = time.Duration(v.Letters) * time.Second / time.Duration(v.Rate)
	}
	switch {
	case phase != "claim":
		p.prints(begun[phase]...)
	case p.Args[1] == "run" && v.rnd.IntN(2) == 0: // it prints this after the plan, and then claims
		p.prints("run " + v.topic)
		window = 200 * time.Millisecond
	}
	after := time.Duration(v.rnd.Int64N(int64(window)))
	if phase == "conclude" {
		after += killWindow - 300*time.Millisecond // the output is up to 200 ms late
	}
	d := death{Phase: phase, After: after.Round(time.Millisecond).String()}
	select {
	case <-time.After(after):
		_ = p.Process.Kill()
	case <-p.exited:
	}
	d.Alive = p.end() == -1
	d.Found, d.Entries = v.find()
	v.Kills = append(v.Kills, d)
}

// verify checks that each selected record is on the target once, and that the ledger and the target
// agree.
func (v *victim) verify() {
	v.t.Helper()
	_, id, _ := strings.Cut(v.run, "/")
	var status row
	v.await("outcome of all letters", func() bool {
		status = v.rows("status", v.run)[0]
		return status.number("pending") == 0
	})
	n := int64(v.Letters)
	if status.number("selected") != n || status.number("sent") != n || status.number("succeeded") != n {
		v.t.Errorf("%d letters were selected, and the status is %v", n, status)
	}

	letters := map[headers.Position]string{} // and their values
	for _, r := range v.read(v.topic+".dlq", kgo.ReadCommitted()) {
		letters[headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}] = string(r.Value)
	}
	if len(letters) != v.Letters {
		v.t.Errorf("there are %d letters, want %d", len(letters), v.Letters)
	}
	entries := v.entries(v.topic + ".dlq")
	copies := v.returned(v.Target, kgo.ReadCommitted())
	ran := v.service.results()
	var wrong []string
	for letter, value := range letters {
		found := copies[letter]
		delete(copies, letter)
		if len(found) != 1 {
			wrong = append(wrong, fmt.Sprintf("letter %v is on its target %d times", letter, len(found)))
			continue
		}
		c, e := found[0], entries[letter]
		at := headers.Position{Topic: c.Topic, Partition: c.Partition, Offset: c.Offset}
		if m, _ := redriven(c); string(c.Value) != value || m.Redrive.ID != id {
			wrong = append(wrong, fmt.Sprintf("letter %v is %q, and its copy at %v is %q, of run %q", letter, value, at, c.Value, m.Redrive.ID))
		}
		if e.Run != id || e.Target != at || e.State != dlq.Succeeded && e.State != dlq.Redriven {
			wrong = append(wrong, fmt.Sprintf("letter %v is at %v, and the ledger says %+v", letter, at, e))
		}
		if !slices.Equal(ran[value], []string{"succeeded"}) {
			wrong = append(wrong, fmt.Sprintf("letter %v ran so: %v", letter, ran[value]))
		}
	}
	for letter := range copies {
		wrong = append(wrong, fmt.Sprintf("%v is on the target, and no letter", letter))
	}
	if len(wrong) > 0 {
		v.t.Errorf("%d letters, as %s; killed so: %+v", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "; "), v.Kills)
	}
}

// entries returns a ledger's last entry of each letter.
func (s *site) entries(topic string) map[headers.Position]dlq.Entry {
	s.t.Helper()
	found := map[headers.Position]dlq.Entry{}
	err := dlq.NewLedger(topic, topic+".ledger", s.Opts()...).Read(s.t.Context(), nil, func(n *dlq.LedgerRecord) {
		if n.Err != nil {
			s.t.Errorf("the ledger of %s: %v", topic, n.Err)
		}
		if n.Run == "" {
			found[headers.Position{Topic: topic, Partition: n.Record.Partition, Offset: n.Letter}] = n.Entry
		}
	})
	must(s.t, err)
	return found
}

// killLog records how the victims ended.
type killLog struct {
	t    *testing.T
	mu   sync.Mutex
	file *os.File
	hits map[string]map[string]int // by broker and phase: kills of a live process
}

func newKillLog(t *testing.T) *killLog {
	t.Helper()
	l := &killLog{t: t, hits: map[string]map[string]int{}}
	if name := os.Getenv(resultsEnv); name != "" {
		var err error
		if l.file, err = os.Create(name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.file.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return l
}

func (l *killLog) add(v *victim, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hits[v.Broker] == nil {
		l.hits[v.Broker] = map[string]int{}
	}
	for _, d := range v.Kills {
		if d.Alive {
			l.hits[v.Broker][d.Phase]++
		}
	}
	if l.file == nil {
		return
	}
	v.Failed = failed
	if err := json.NewEncoder(l.file).Encode(v.report); err != nil {
		l.t.Error(err)
	}
}

// missing returns the phases in which no live process was killed.
func (l *killLog) missing(kind string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(phases), func(phase string) bool { return l.hits[kind][phase] > 0 })
}

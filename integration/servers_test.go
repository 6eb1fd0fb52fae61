//go:build unix

package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// session is the session timeout of a server in its group, as docs/serve.md has it.
const session = 45 * time.Second

// Three servers share a topic, and a rule redrives it. The owner of the topic is killed or
// suspended, between the rule's decision and its run or in the midst of the run. Another server
// owns the topic when its session is over, and goes on. No letter is sent twice, no decision has
// two runs, and people are notified of each incident once; also when the suspended server wakes.
//
// Nobody waits for 45 s here. The embedded broker sees that a server asks for such a session, and
// grants a shorter one. On Kafka, which bounds sessions but shortens none, the lost member is
// removed from its group, as at the end of its session.
func TestServers_OfThreeOneIsLost(t *testing.T) {
	t.Parallel()
	binary(t)
	sites := map[string]func(*testing.T) *site{"kafka": onKafka, "embedded": onEmbedded}
	for kind, at := range sites {
		for _, moment := range []string{"decided", "sending"} {
			for lost, by := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "suspended": syscall.SIGSTOP} {
				t.Run(kind+"/"+moment+"/"+lost, func(t *testing.T) {
					t.Parallel()
					c := newCrew(at(t))
					c.incident(40)
					owner := c.owner()
					decision := c.decision()
					c.writes(c.rule())
					if moment == "decided" {
						<-decision
					} else {
						c.await("letters that came home", func() bool { return len(c.service.results()) >= 10 })
					}
					c.loses(owner, by)
					if by == syscall.SIGSTOP {
						c.wakes(owner)
					}
					c.home(40)
					c.incident(5) // the servers that are left go on together
					c.writes(c.rule())
					c.home(45)
					c.verify(45)
				})
			}
		}
	}
}

// crew is three servers of one group, over a topic whose service fails.
type crew struct {
	*site
	service            *service
	topic, dlq, folder string
	group              string    // of the servers
	servers            []*server // that live
	sent               int       // records of the topic

	mu       sync.Mutex
	messages map[string][]string // messages to people, by what they are about
}

type server struct {
	*process
	id  string // of its clients
	url string
}

func newCrew(s *site) *crew {
	s.t.Helper()
	s.Patience = 2 * time.Minute
	c := &crew{site: s, topic: topicName(s.t), folder: s.t.TempDir(), messages: map[string][]string{}}
	c.group = c.topic + "-servers"
	// Other servers of the cluster do not see the topic, and these no other one.
	suffix := ".dead-" + strings.ToLower(rand.Text()[:8])
	c.dlq, s.naming.DLQ = c.topic+suffix, "{topic}"+suffix
	hook := httptest.NewServer(http.HandlerFunc(c.receive))
	s.t.Cleanup(hook.Close)
	s.settings = append(s.settings, "SIDING_DLQ_NAME="+s.naming.DLQ, "HOOK=generic+"+hook.URL+"?template=json")
	s.CreateTopic(c.topic, 2)
	c.service = s.deploy(c.topic, c.topic, time.Second)
	if s.Cluster != nil {
		c.shortSessions()
	}
	c.writes("[]")
	config := filepath.Join(c.folder, "serve.yaml")
	c.write(config, "group: "+c.group+"\nurl: http://siding.example.com\nrefresh: 500ms\nrules-file: rules.yaml\nnotify: [{name: hook, url-env: HOOK}]\n")
	for i := range 3 {
		id := fmt.Sprint("server-", i)
		is := &server{process: s.begin("serve", "--config", config, "--listen", "127.0.0.1:0", "--client-id", id), id: id}
		s.t.Cleanup(func() {
			if s.t.Failed() {
				var runs string
				is.get("/api/v1/topics/"+url.PathEscape(c.dlq)+"/runs", &runs)
				s.t.Logf("process %d prints\n%s\nand has the runs %s", is.Process.Pid, is.output(), runs)
			}
		})
		c.servers = append(c.servers, is)
	}
	for _, is := range c.servers {
		if !is.prints("http://127.0.0.1:") {
			s.t.Fatalf("it does not serve, and prints\n%s", is.output())
		}
		_, at, _ := strings.Cut(is.output(), "http://127.0.0.1:")
		is.url = "http://127.0.0.1:" + strings.Fields(at)[0]
	}
	c.await("group of three", func() bool {
		got, err := s.admin.DescribeGroups(s.t.Context(), c.group)
		return err == nil && got[c.group].State == "Stable" && len(got[c.group].Members) == 3
	})
	return c
}

// shortSessions grants the servers shorter sessions than they ask for.
func (c *crew) shortSessions() {
	c.Cluster.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.Cluster.KeepControl()
		if join := r.(*kmsg.JoinGroupRequest); join.Group == c.group {
			if asked := time.Duration(join.SessionTimeoutMillis) * time.Millisecond; asked != session {
				c.t.Errorf("a server asks for a session of %v, and the documentation promises %v", asked, session)
			}
			join.SessionTimeoutMillis = int32((6 * time.Second).Milliseconds())
		}
		return nil, nil, false
	})
}

// removes removes a server that is silent from the group, as the end of its session does.
func (c *crew) removes(is *server) {
	c.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = c.group
	c.await("member of the lost server", func() bool {
		got, err := c.admin.DescribeGroups(c.t.Context(), c.group)
		if err != nil {
			return false
		}
		for _, m := range got[c.group].Members {
			if m.ClientID == is.id {
				lost := kmsg.NewLeaveGroupRequestMember()
				lost.MemberID = m.MemberID
				req.Members = append(req.Members, lost)
			}
		}
		return len(req.Members) == 1
	})
	resp, err := req.RequestWith(c.t.Context(), client(c.t, c))
	if err == nil {
		err = errors.Join(kerr.ErrorForCode(resp.ErrorCode), kerr.ErrorForCode(resp.Members[0].ErrorCode))
	}
	if err != nil {
		c.t.Fatalf("remove %s from its group: %v", is.id, err)
	}
}

// receive takes a message to people.
func (c *crew) receive(_ http.ResponseWriter, r *http.Request) {
	var m struct{ Title, Key, State string }
	err := json.NewDecoder(r.Body).Decode(&m)
	c.mu.Lock()
	defer c.mu.Unlock()
	about := m.Key + " " + m.State
	c.messages[about] = append(c.messages[about], fmt.Sprint(m.Title, err))
}

func (c *crew) write(name, text string) {
	c.t.Helper()
	must(c.t, os.WriteFile(name+".new", []byte(text), 0o600))
	must(c.t, os.Rename(name+".new", name))
}

// writes writes the file of rules.
func (c *crew) writes(rules string) {
	c.t.Helper()
	c.write(filepath.Join(c.folder, "rules.yaml"), "rules: "+rules+"\n")
}

func (c *crew) rule() string {
	return "[{name: outage, topics: '" + c.dlq + "', classes: [http.503], cool-down: 1s, rate: 60, window: 1s, wait: 1h}]"
}

// incident lets n records fail, while there is no rule. It returns when people were notified of
// what is wrong, and when the service is repaired.
func (c *crew) incident(n int) {
	c.t.Helper()
	c.writes("[]")
	c.await("servers without rules", func() bool {
		return !slices.ContainsFunc(c.servers, func(is *server) bool {
			var rules []any
			return !is.get("/api/v1/rules", &rules) || len(rules) > 0
		})
	})
	c.service.failing("http.503")
	before := c.count(c.dlq)
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Topic: c.topic, Key: fmt.Append(nil, c.sent), Value: fmt.Append(nil, c.sent)})
		c.sent++
	}
	c.Produce(records...)
	c.await("dead letters", func() bool { return c.count(c.dlq) >= before+int64(n) })
	c.service.fixed()
	c.await("note that people were notified of open letters and of a new class", func() bool {
		notified := map[string]bool{}
		for _, r := range c.read(c.topic+".dlq.ledger", kgo.ReadCommitted()) {
			notified[string(r.Key)] = strings.Contains(string(r.Value), `"toldTo":["hook"]`)
		}
		return notified["run/serve/alert/open/"+c.group] && notified["run/serve/alert/new-class/"+c.group]
	})
}

// decision returns a channel that is closed when the ledger has the first decision of the rule.
func (c *crew) decision() <-chan struct{} {
	c.t.Helper()
	cl, err := kgo.NewClient(append(c.Opts(), kgo.ConsumeTopics(c.topic+".dlq.ledger"), kgo.FetchMaxWait(time.Second))...)
	must(c.t, err)
	ctx, cancel := context.WithCancel(c.t.Context())
	seen, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer cl.Close()
		for ctx.Err() == nil {
			for _, r := range cl.PollFetches(ctx).Records() {
				if strings.HasPrefix(string(r.Key), "run/serve/rule/outage/decision/") {
					close(seen)
					return
				}
			}
		}
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
	return seen
}

// get reads what a server answers; it reports whether it did.
func (s *server) get(path string, into any) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Error(err)
		return false
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if is, ok := into.(*string); ok {
		*is = string(text)
		return err == nil
	}
	return err == nil && json.Unmarshal(text, into) == nil
}

// owns reports whether a server reports the topic's metrics, which its owner does.
func (s *server) owns(dlq string) bool {
	var metrics string
	return s.get("/metrics", &metrics) && strings.Contains(metrics, `siding_dead_letters_unread{messaging_destination_name="`+dlq+`"}`)
}

// owner awaits the one server that owns the topic.
func (c *crew) owner() (owner *server) {
	c.t.Helper()
	c.await("one owner", func() bool {
		n := 0
		for _, is := range c.servers {
			if is.owns(c.dlq) {
				owner = is
				n++
			}
		}
		return n == 1
	})
	return owner
}

// loses kills or suspends the owner, and awaits the next one.
func (c *crew) loses(owner *server, s syscall.Signal) {
	c.t.Helper()
	signal(c.t, owner.process, s)
	at := time.Now()
	c.servers = slices.DeleteFunc(c.servers, func(is *server) bool { return is == owner })
	state := "no run"
	for _, run := range c.runs() {
		state = fmt.Sprintf("run %s, %d of %d sent", run.State, run.Counts.Sent, run.Counts.Selected)
	}
	if c.Cluster == nil {
		c.removes(owner)
	}
	c.owner()
	c.t.Logf("lost with %s; another server owns the topic after %v", state, time.Since(at).Round(time.Millisecond))
}

// wakes lets a suspended server go on, as soon as another one has taken up its work.
func (c *crew) wakes(sleeper *server) {
	c.t.Helper()
	c.await("run at another server", func() bool {
		return slices.ContainsFunc(c.runs(), func(r serverRun) bool { return r.Here })
	})
	signal(c.t, sleeper.process, syscall.SIGCONT)
	c.servers = append(c.servers, sleeper)
}

type serverRun struct {
	ID, State, By string
	Here          bool
	Counts        struct{ Selected, Sent, Succeeded int }
}

// runs returns the runs as the servers that are left show them.
func (c *crew) runs() (all []serverRun) {
	for _, is := range c.servers {
		var runs []serverRun
		if is.get("/api/v1/topics/"+url.PathEscape(c.dlq)+"/runs", &runs) {
			all = append(all, runs...)
		}
	}
	return all
}

// home waits until n letters came home, and no server has a run that has not ended.
func (c *crew) home(n int) {
	c.t.Helper()
	c.await(fmt.Sprintf("%d letters that came home", n), func() bool {
		runs := c.runs()
		return len(c.service.results()) >= n && len(runs) > 0 && !slices.ContainsFunc(runs, func(r serverRun) bool { return r.State != "done" })
	})
}

// verify checks that n letters are on their target once, and that what the ledger says of the rule
// is whole.
func (c *crew) verify(n int) {
	c.t.Helper()
	c.onceEach(c.topic, c.topic+".retry.1s", n)
	for value, ran := range c.service.results() {
		if !slices.Equal(ran, []string{"succeeded"}) {
			c.t.Errorf("letter %s ran so: %v", value, ran)
		}
	}
	sent := map[string]int{}
	for _, is := range c.rows("runs", c.dlq) {
		if is.text("state") != "done" || is.text("by") != "rule outage" {
			c.t.Errorf("there is the run %v", is)
		}
		_, id, _ := strings.Cut(is.text("run"), "/")
		sent[id] = int(is.number("sent"))
	}
	if total := 0; len(sent) != 2 {
		c.t.Errorf("there are the runs %v, want two", sent)
	} else {
		for _, n := range sent {
			total += n
		}
		if total != n {
			c.t.Errorf("the runs sent %v", sent)
		}
	}
	for _, is := range c.servers {
		type event struct{ What, Run, End string }
		var history []event
		c.await("history that is whole", func() bool {
			return is.get("/api/v1/rules/outage/history", &history) && !slices.ContainsFunc(history, func(e event) bool { return e.End == "" })
		})
		decided := map[string]int{}
		for _, e := range history {
			if _, began := sent[e.Run]; e.What != "redrive" || began && e.End != "done" || !began && !strings.HasPrefix(e.End, "not begun") {
				c.t.Errorf("%s has the decision %+v", is.url, e)
			}
			decided[e.Run]++
		}
		for id := range sent {
			if decided[id] != 1 {
				c.t.Errorf("run %s has %d decisions at %s: %+v", id, decided[id], is.url, history)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := 0
	for about, messages := range c.messages {
		if len(messages) != 1 {
			c.t.Errorf("people were notified %d times: %q", len(messages), messages)
		}
		if strings.HasSuffix(about, " begun") {
			begun++
		}
	}
	if begun != 2 { // open letters, and a new class
		c.t.Errorf("people were notified of %d incidents: %q", begun, c.messages)
	}
}

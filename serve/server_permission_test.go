package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// guarded is a server in virtual time whose own user, ann, has some permissions on the brokers.
type guarded struct {
	*station
	admin *kgo.Client
	opts  []kgo.Opt // of admin
}

// guard calls f in a bubble, with a server that runs as ann. Four letters are open, and the service
// works again.
func guard(t *testing.T, rights []kfake.ACL, f func(is *guarded)) {
	t.Helper()
	guardAs(t, serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 1}, Retention: &serve.Retention{MaxAge: -1, MaxCount: 1, Every: 1000 * time.Hour}}}}, rights, f)
}

// guardAs is guard with a configuration.
func guardAs(t *testing.T, cfg serve.Config, rights []kfake.ACL, f func(is *guarded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // the last clients end
		var vn kfake.VirtualNetwork
		cluster, err := bubble.NewCluster(&vn, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
			kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "ann", "secret", rights...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		as := func(user string) []kgo.Opt {
			return append(bubble.Opts(&vn),
				kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.DisableClientMetrics(),
				kgo.SASL(plain.Auth{User: user, Pass: "secret"}.AsMechanism()),
			)
		}
		is := &guarded{opts: as("admin")}
		if is.admin, err = kgo.NewClient(is.opts...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(is.admin.Close)
		is.station = outageAt(t, consumertest.On(t, is.opts...), 4)
		is.broken.Store(false)
		is.k = consumertest.On(t, as("ann")...)
		is.serve(cfg)
		f(is)
	})
}

// revoke takes a permission from ann, and grant gives it back.
func (is *guarded) revoke(right kfake.ACL) {
	is.t.Helper()
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourceName, f.ResourcePatternType = right.Resource, &right.Name, kmsg.ACLResourcePatternTypeLiteral
	f.Principal, f.Operation, f.PermissionType = kmsg.StringPtr("User:ann"), right.Operation, kmsg.ACLPermissionTypeAllow
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = append(req.Filters, f)
	resp, err := req.RequestWith(is.t.Context(), is.admin)
	if err != nil || len(resp.Results) != 1 || resp.Results[0].ErrorCode != 0 || len(resp.Results[0].MatchingACLs) != 1 {
		is.t.Fatalf("revoking %v on %s: %+v, %v", right.Operation, right.Name, resp, err)
	}
}

func (is *guarded) grant(right kfake.ACL) {
	is.t.Helper()
	c := kmsg.NewCreateACLsRequestCreation()
	c.ResourceType, c.ResourceName, c.ResourcePatternType = right.Resource, right.Name, kmsg.ACLResourcePatternTypeLiteral
	c.Principal, c.Host, c.Operation, c.PermissionType = "User:ann", "*", right.Operation, kmsg.ACLPermissionTypeAllow
	req := kmsg.NewPtrCreateACLsRequest()
	req.Creations = append(req.Creations, c)
	resp, err := req.RequestWith(is.t.Context(), is.admin)
	if err != nil || kerr.ErrorForCode(resp.Results[0].ErrorCode) != nil {
		is.t.Fatalf("granting %v on %s: %+v, %v", right.Operation, right.Name, resp, err)
	}
}

// left returns the letters that are open, and those that are in the topic, as admin sees them.
func (is *guarded) left() (open, held int64) {
	is.t.Helper()
	s, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", is.opts...).Summarize(is.t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
	if err != nil {
		is.t.Fatal(err)
	}
	return s.Open, s.Open + s.Resolved + s.Pending
}

// watches waits until the server does all that the first column stands for: it knows the letters,
// owns the topic, knows its retention, and has noted the incident in the ledger.
func (is *guarded) watches() {
	is.t.Helper()
	is.within(5*time.Minute, "the server watches", func() bool {
		var topic api.Topic
		code := is.ask(http.MethodGet, "/topics/orders.dlq", "", &topic)
		if code != http.StatusOK || topic.Known == nil || topic.Open == 0 || topic.Problem != "" {
			return false
		}
		metrics := get(is.t, is.Server, "/metrics")
		return strings.Contains(metrics, "siding_dead_letters_open{") && strings.Contains(metrics, "siding_dead_letters_next_expiry_seconds{")
	})
	is.within(time.Minute, "the incident is noted", func() bool {
		noted := false
		err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", is.opts...).Read(is.t.Context(), nil, func(n *dlq.LedgerRecord) {
			noted = noted || n.Run == "serve/alert/open"
		})
		return err == nil && noted
	})
}

// post sends a request to the API and the form of the console that does the same, and returns the
// kind and the text of the problem, and the words of the page.
func (is *guarded) post(path, body, form string, fields url.Values) (kind api.Kind, text, page string) {
	is.t.Helper()
	answer := send(is.t, is.Server, http.MethodPost, "/api/v1"+path, body)
	var p api.Problem
	if answer.StatusCode >= http.StatusBadRequest {
		is.ask(http.MethodPost, path, body, &p)
	}
	if form != "" {
		_, page = (&person{t: is.t, s: is.Server}).do(http.MethodPost, form, fields)
	}
	return p.Kind(), p.Detail, page
}

// serverRights reads the table of docs/serve.md by its columns. What its last row leaves to the
// verbs of the program is in the table of docs/operations.md.
func serverRights(t *testing.T) (columns [3][]kfake.ACL) {
	t.Helper()
	right := regexp.MustCompile("`([A-Z_]+)`")
	add := func(column int, resource kmsg.ACLResourceType, name, cell string) {
		for _, m := range right.FindAllStringSubmatch(cell, -1) {
			op, err := kmsg.ParseACLOperation(m[1])
			if err != nil {
				t.Fatal(err)
			}
			acl := kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
			if !slices.Contains(columns[0], acl) {
				columns[column] = append(columns[column], acl)
			}
		}
	}
	rows := func(file, from string) (all [][]string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), from)
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, "|"); len(cells) > 4 {
				all = append(all, cells)
			} else if len(all) > 0 {
				break
			}
		}
		return all
	}
	verbs := false
	for _, cells := range rows("../docs/serve.md", "\n**What it may do on Kafka**") {
		resource, name := kmsg.ACLResourceTypeTopic, ""
		switch cell := strings.TrimSpace(cells[1]); {
		case cell == "group `siding-serve`":
			resource, name = kmsg.ACLResourceTypeGroup, "siding-serve"
		case cell == "the dead-letter topics":
			name = "orders.dlq"
		case cell == "their ledgers":
			name = "orders.dlq.ledger"
		case strings.HasPrefix(cell, "retry topics"):
			verbs = strings.TrimSpace(cells[3]) == "as the verbs of the program"
		}
		for i := range columns {
			add(i, resource, name, cells[2+i])
		}
	}
	of := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	for _, cells := range rows("../docs/operations.md", "\n### Permissions for redriving\n") {
		if m := of.FindStringSubmatch(cells[1]); m != nil && verbs {
			resource := map[string]kmsg.ACLResourceType{"group": kmsg.ACLResourceTypeGroup, "topic": kmsg.ACLResourceTypeTopic, "transactional id": kmsg.ACLResourceTypeTransactionalId}[m[1]]
			add(1, resource, m[2], cells[3])
		}
	}
	if len(columns[0]) != 5 || len(columns[1]) != 5 || len(columns[2]) != 1 {
		t.Fatalf("the documentation has the permissions %v", columns)
	}
	return columns
}

// named returns what an error about a missing permission says.
func named(right kfake.ACL) string {
	resource := map[kmsg.ACLResourceType]string{kmsg.ACLResourceTypeGroup: "group", kmsg.ACLResourceTypeTopic: "topic", kmsg.ACLResourceTypeTransactionalId: "transactional-id"}[right.Resource]
	return fmt.Sprintf("the user needs %v on %s %s: have it granted", right.Operation, resource, right.Name)
}

const runBody = `{"pace":{"rampMs":-1,"windowMs":1000}}`

// redrives begins a run of all letters, and waits until they came home.
func (is *guarded) redrives() {
	is.t.Helper()
	var run api.Run
	if code := is.ask(http.MethodPost, "/topics/orders.dlq/runs", runBody, &run); code != http.StatusAccepted {
		is.t.Fatalf("a run: %d, %+v", code, run)
	}
	is.within(5*time.Minute, "the letters came home", func() bool {
		return ask[api.Run](is.station, "/topics/orders.dlq/runs/"+run.ID).Counts.Succeeded == run.Counts.Selected
	})
}

// The server's user has the documented permissions and no others. Each column is enough for what it
// stands for: the first to watch and alert, with the second letters are redriven, discarded and
// reopened, with the third they are deleted.
func TestServer_NeedsTheDocumentedPermissions(t *testing.T) {
	t.Parallel()
	columns := serverRights(t)
	t.Run("watch", func(t *testing.T) {
		t.Parallel()
		guard(t, columns[0], func(is *guarded) {
			commits(is.t, is.admin, "mail", "orders", commitmark.Guard{State: commitmark.Held, Since: time.Now()})
			is.watches()
			time.Sleep(time.Minute)
			guards := func() int { return len(ask[api.Topic](is.station, "/topics/orders.dlq").Guards) }
			if n, logged := guards(), is.log.count("guards"); n != 0 || logged != 0 {
				is.t.Errorf("without the permissions %d groups hold the source, and the log says so %d times", n, logged)
			}
			is.grant(kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Operation: kmsg.ACLOperationDescribe})
			is.grant(kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "mail", Operation: kmsg.ACLOperationDescribe})
			is.within(time.Minute, "with them a group does", func() bool { return guards() == 1 })
		})
	})
	t.Run("redrive", func(t *testing.T) {
		t.Parallel()
		guard(t, slices.Concat(columns[0], columns[1]), func(is *guarded) {
			is.watches()
			for _, act := range []string{"discard", "reopen"} {
				if code := is.ask(http.MethodPost, "/topics/orders.dlq/letters/0/0/"+act, `{"why":"x"}`, nil); code != http.StatusOK {
					is.t.Fatalf("%s: %d", act, code)
				}
			}
			is.redrives()
		})
	})
	t.Run("retention", func(t *testing.T) {
		t.Parallel()
		guard(t, slices.Concat(columns[0], columns[2]), func(is *guarded) {
			is.watches()
			is.ask(http.MethodPost, "/topics/orders.dlq/discard", `{"why":"x","expect":4}`, nil)
			var report api.RetentionReport
			if code := is.ask(http.MethodPost, "/topics/orders.dlq/retention", "", &report); code != http.StatusOK || report.Letters != 3 {
				is.t.Errorf("retention: %d, %+v", code, report)
			}
			if _, held := is.left(); held != 1 {
				is.t.Errorf("%d letters are left", held)
			}
		})
	})
}

// An operator takes a permission away while the server runs. The API answers with kafka-denied and
// the console with a page: both name the permission. Nothing was half done, and once the permission
// is granted again all goes on.
func TestServer_NamesAPermissionThatItLacks(t *testing.T) {
	t.Parallel()
	columns := serverRights(t)
	all := slices.Concat(columns[:]...)
	for column := range columns {
		for _, right := range columns[column] {
			t.Run(fmt.Sprint(right.Operation, " on ", right.Name), func(t *testing.T) {
				t.Parallel()
				guard(t, all, func(is *guarded) {
					is.watches()
					is.lacks(column, right)
				})
			})
		}
	}
}

// lacks revokes a permission, does what it is for, and grants it again.
func (is *guarded) lacks(column int, right kfake.ACL) {
	is.t.Helper()
	const topic = "/topics/orders.dlq"
	begin := url.Values{"do": {"begin"}, "key": {"k"}, "why": {"w"}, "expect": {"4"}, "ramp": {"none"}}
	want := named(right)
	denied := func(what string, kind api.Kind, text, page string) {
		is.t.Helper()
		if kind != api.KafkaDenied || !strings.Contains(text, want) {
			is.t.Errorf("%s answers %q: %s; want %q", what, kind, text, want)
		}
		if !strings.Contains(page, want) {
			is.t.Errorf("the page for %s lacks %q: %s", what, want, page)
		}
	}
	if column == 2 {
		is.ask(http.MethodPost, topic+"/discard", `{"why":"x","expect":3,"filter":{"offset":["0:0-2"]}}`, nil)
	}
	open, held := is.left()
	is.revoke(right)
	again := func() { is.watches() }
	switch name, op := right.Name, right.Operation; {
	case column == 0 && (right.Resource == kmsg.ACLResourceTypeGroup || op == kmsg.ACLOperationDescribeConfigs):
		is.within(5*time.Minute, "the topic says "+want, func() bool {
			return strings.Contains(ask[api.Topic](is.station, topic).Problem, want)
		})
		for _, path := range []string{"/", topic} {
			words(is.t, is.Server, path, want)
		}
	case op == kmsg.ACLOperationRead && column == 0:
		var p api.Problem
		is.ask(http.MethodGet, topic+"/letters/0/0", "", &p)
		w, page := visit(is.t, is.Server, httptest.NewRequest(http.MethodGet, topic+"/letters/0/0", nil))
		if denied("a letter", p.Kind(), p.Detail, page); w.Code != http.StatusBadGateway {
			is.t.Errorf("the page of a letter: %d", w.Code)
		}
	case name == "orders.dlq.ledger":
		kind, text, page := is.post(topic+"/letters/0/0/discard", `{"why":"x"}`, topic+"/discard", begin)
		denied("a discard", kind, text, page)
		kind, text, page = is.post(topic+"/runs", runBody, topic+"/redrive", begin)
		denied("a run", kind, text, page)
	case column == 1:
		kind, text, page := is.post(topic+"/plan", `{}`, topic+"/redrive", url.Values{"do": {"plan"}})
		denied("a plan", kind, text, page)
		kind, text, page = is.post(topic+"/runs", runBody, topic+"/redrive", begin)
		denied("a run", kind, text, page)
		again = is.redrives
	default:
		kind, text, _ := is.post(topic+"/retention", "", "", nil)
		denied("retention", kind, text, want)
		again = func() {
			if kind, text, _ := is.post(topic+"/retention", "", "", nil); kind != "" {
				is.t.Errorf("retention with its permission: %s: %s", kind, text)
			}
			if _, held := is.left(); held != 1 {
				is.t.Errorf("%d letters are left", held)
			}
		}
	}
	if o, h := is.left(); o != open || h != held {
		is.t.Errorf("%d of %d letters are open, and %d of %d before", o, h, open, held)
	}
	if runs := ask[[]api.Run](is.station, "/runs"); len(runs) != 0 {
		is.t.Errorf("there are runs: %+v", runs)
	}
	is.grant(right)
	again()
}

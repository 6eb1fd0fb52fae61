package integration_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
	"github.com/sidingkafka/siding/retrytopics"
)

// What teams run on is encrypted, asks who they are, and grants what was applied for. The embedded
// broker knows little of that.
func TestSecuredKafka(t *testing.T) {
	t.Parallel()
	binary(t)
	s := startSecured(t)
	t.Run("each way in", s.waysIn)
	t.Run("wrong credentials", s.wrongCredentials)
	t.Run("exactly the documented permissions", s.exactly)
	t.Run("a consumer that lacks one", s.consumerLacksOne)
}

// host is the name in the broker's certificate.
const host = "kafka.example"

// secured is a broker with an authorizer and four ways in. The clients' own is for the tests, which
// may do everything there. Of the others TLS knows no users, so it grants everything too.
type secured struct {
	*integration.Kafka
	ca     *authority
	admin  *kadm.Client
	folder string // with the files of the program's users
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	ca := newAuthority(t)
	cert, key := ca.issue(host)
	const folder = "/etc/kafka/secrets/"
	encrypted := func(settings map[string]string) map[string]string {
		settings["ssl.keystore.type"], settings["ssl.keystore.location"] = "PEM", folder+"broker.pem"
		settings["ssl.truststore.type"], settings["ssl.truststore.location"] = "PEM", folder+"authority.pem"
		return settings
	}
	kafka := ownKafka(t,
		integration.WithFile(folder+"broker.pem", append(key, cert...)),
		integration.WithFile(folder+"authority.pem", ca.pem),
		integration.WithListener("TLS", "SSL", encrypted(map[string]string{})),
		integration.WithListener("MTLS", "SSL", encrypted(map[string]string{"ssl.client.auth": "required"})),
		integration.WithListener("SCRAM", "SASL_SSL", encrypted(map[string]string{
			"sasl.enabled.mechanisms":        "SCRAM-SHA-512",
			"scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		})),
		integration.WithConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
		integration.WithConfig("super.users", "User:ANONYMOUS"))
	s := &secured{Kafka: kafka, ca: ca, admin: kadm.NewClient(client(t, kafka)), folder: t.TempDir()}
	s.file(t, "ca.pem", ca.pem)
	return s
}

// file writes a file for the program, and returns its path.
func (s *secured) file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(s.folder, name)
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// user lets a user log in by SCRAM with this password, and waits until the broker knows of it.
func (s *secured) user(t *testing.T, name, password string) {
	t.Helper()
	rs, err := s.admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: name, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}})
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	for known := kadm.DescribedUserSCRAMs(nil); err == nil && known[name].Err != nil || known == nil; {
		known, err = s.admin.DescribeUserSCRAMs(t.Context(), name)
	}
	must(t, err)
}

// byPassword are the options of a client that logs in by SCRAM.
func (s *secured) byPassword(user, password string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(s.Listener("SCRAM")...), kgo.DialTLSConfig(s.ca.trusting(host)),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()),
	}
}

// byCertificate are those of a client with a certificate; its user is CN=<user>.
func (s *secured) byCertificate(user string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(s.Listener("MTLS")...), kgo.DialTLSConfig(s.ca.as(user, host))}
}

// variables are the program's variables of a user with a certificate.
func (s *secured) variables(t *testing.T, user string) []string {
	t.Helper()
	cert, key := s.ca.issue(user)
	return []string{
		"SIDING_BROKERS=" + strings.Join(s.Listener("MTLS"), ","), "SIDING_TLS_CA=" + filepath.Join(s.folder, "ca.pem"), "SIDING_TLS_SERVER_NAME=" + host,
		"SIDING_TLS_CERT=" + s.file(t, user+".pem", cert), "SIDING_TLS_KEY=" + s.file(t, user+".key", key),
	}
}

// as returns a site whose program has these variables.
func (s *secured) as(t *testing.T, settings ...string) *site {
	t.Helper()
	site := on(t, s.Kafka)
	site.brokers, site.settings = "", settings
	return site
}

// permission is what an ACL grants.
type permission struct {
	resource  kmsg.ACLResourceType
	name      string
	operation kmsg.ACLOperation
}

func (p permission) String() string { return fmt.Sprint(p.operation, " on ", p.name) }

// grant creates the ACLs of all users at once, and waits until they hold.
func (s *secured) grant(t *testing.T, to map[string][]permission) {
	t.Helper()
	req := kmsg.NewPtrCreateACLsRequest()
	for user, permissions := range to {
		for _, p := range permissions {
			c := kmsg.NewCreateACLsRequestCreation()
			c.ResourceType, c.ResourceName, c.ResourcePatternType = p.resource, p.name, kmsg.ACLResourcePatternTypeLiteral
			c.Principal, c.Host, c.Operation, c.PermissionType = "User:"+user, "*", p.operation, kmsg.ACLPermissionTypeAllow
			req.Creations = append(req.Creations, c)
		}
	}
	cl := client(t, s.Kafka)
	resp, err := req.RequestWith(t.Context(), cl)
	must(t, err)
	for _, r := range resp.Results {
		if r.ErrorCode != 0 {
			t.Fatalf("create ACLs: code %d, %v", r.ErrorCode, r.ErrorMessage)
		}
	}
	for {
		found := 0
		rs, err := s.admin.DescribeACLs(t.Context(), kadm.NewACLs().AnyResource().Allow().AllowHosts().ResourcePatternType(kadm.ACLPatternAny).Operations(kadm.OpAny))
		for _, r := range rs {
			err = errors.Join(err, r.Err)
			for _, d := range r.Described {
				if user := strings.TrimPrefix(d.Principal, "User:"); to[user] != nil {
					found++
				}
			}
		}
		must(t, err)
		if found >= len(req.Creations) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// documented reads a table of permissions in docs/operations.md by its columns, for a topic that
// stands for orders, and a group that stands for billing. Its only retry topic waits a second.
func documented(t *testing.T, section string, columns int, topic, group string) [][]permission {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	must(t, err)
	_, table, _ := strings.Cut(string(text), "\n"+section+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	name := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	operation := regexp.MustCompile("`([A-Z_]+)`")
	resources := map[string]kmsg.ACLResourceType{
		"group": kmsg.ACLResourceTypeGroup, "topic": kmsg.ACLResourceTypeTopic, "transactional id": kmsg.ACLResourceTypeTransactionalId,
	}
	here := strings.NewReplacer("orders", topic, "billing", group, ".retry.5s", ".retry.1s")
	all := make([][]permission, columns)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != columns+3 {
			continue
		}
		of := name.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		for i := range all {
			for _, m := range operation.FindAllStringSubmatch(cells[2+i], -1) {
				op, err := kmsg.ParseACLOperation(m[1])
				must(t, err)
				all[i] = append(all[i], permission{resources[of[1]], here.Replace(of[2]), op})
			}
		}
	}
	for i, c := range all {
		if len(c) == 0 {
			t.Fatalf("docs/operations.md, %s: column %d grants nothing", section, i)
		}
	}
	return all
}

// forConsumer returns the documented permissions of a consumer by their columns: those that are
// always needed, those needed unless the mode is Off, and those needed with Create.
func forConsumer(t *testing.T, topic, group string) [][]permission {
	t.Helper()
	return documented(t, "## Permissions", 3, topic, group)
}

// forOperator returns those of an operator: to look, run, discard, import and prune.
func forOperator(t *testing.T, topic, group string) [][]permission {
	t.Helper()
	return documented(t, "### Permissions for redriving", 5, topic, group)
}

// billing is the configuration of a consumer. A record named later succeeds at its second attempt.
// Any other is a dead letter whose class is its value, and succeeds once it is redriven.
func billing(topic, group string, mode retrytopics.Mode, opts ...kgo.Opt) consumer.Config {
	return consumer.Config{
		Group: group, Topics: []string{topic}, Kafka: append(opts, kgo.HeartbeatInterval(500*time.Millisecond)), CommitInterval: 100 * time.Millisecond,
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second}, Jitter: -1}, Provision: retrytopics.Spec{Mode: mode},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch d := consumer.DeliveryOf(ctx, r); {
			case d.RedriveID != "", string(r.Value) == "later" && d.Attempt > 1:
				return nil
			case string(r.Value) == "later":
				return classify.Retryable(errors.New("busy"))
			}
			return classify.Terminal(classify.As(errors.New("cannot go on"), string(r.Value)))
		},
	}
}

// ensure creates the siblings of a consumer that it may not create.
func (s *secured) ensure(t *testing.T, cfg consumer.Config) {
	t.Helper()
	siblings, err := cfg.Naming.Siblings(cfg.Topics[0], cfg.Group, cfg.Policy.Tiers...)
	if err == nil {
		_, err = retrytopics.Ensure(t.Context(), s.admin, retrytopics.Spec{}, siblings)
	}
	must(t, err)
}

// incident creates a topic, lets a consumer retry one record and dead-letter one of each class, and
// waits for that.
func (s *secured) incident(t *testing.T, cfg consumer.Config, classes ...string) {
	t.Helper()
	k := consumertest.On(t, s.Opts()...)
	k.Patience = time.Minute
	topic := cfg.Topics[0]
	k.CreateTopic(topic, 1)
	if cfg.Provision.Mode != retrytopics.Create {
		s.ensure(t, cfg)
	}
	c := k.Run(cfg)
	records := []*kgo.Record{{Topic: topic, Value: []byte("later")}}
	for _, class := range classes {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(class)})
	}
	k.Produce(records...)
	k.Handled(records[0], 1)
	for _, r := range records[1:] {
		k.DeadLettered(r, headers.ReasonTerminal)
	}
	if h := c.Health(); !h.OK {
		t.Errorf("health is %+v", h)
	}
}

// waysIn lets a consumer and the program in by each of the three ways. Two of them know who it is,
// and grant what the documentation lists.
func (s *secured) waysIn(t *testing.T) {
	t.Parallel()
	s.user(t, "billing", "secret of billing")
	s.user(t, "oncall", "secret of oncall")
	config := s.file(t, "config.yaml", fmt.Appendf(nil, `
profiles:
  production:
    brokers: [%s]
    tls-ca: ca.pem
    tls-server-name: %s
    sasl: SCRAM-SHA-512
    sasl-user: oncall
    sasl-password-env: KAFKA_PASSWORD
`, strings.Join(s.Listener("SCRAM"), ", "), host))
	for _, way := range []struct {
		name           string
		user, operator string // empty: this way in knows no users
		consumer       []kgo.Opt
		program        *site
		flags          []string
	}{
		{
			"scram", "billing", "oncall", s.byPassword("billing", "secret of billing"),
			s.as(t, "KAFKA_PASSWORD=secret of oncall"),
			[]string{"--config", config, "--profile", "production"},
		},
		{
			"tls", "", "",
			[]kgo.Opt{kgo.SeedBrokers(s.Listener("TLS")...), kgo.DialTLSConfig(s.ca.trusting(host))},
			s.as(t),
			[]string{"--brokers", strings.Join(s.Listener("TLS"), ","), "--tls-ca", filepath.Join(s.folder, "ca.pem"), "--tls-server-name", host},
		},
		{"mtls", "CN=billing", "CN=oncall", s.byCertificate("billing"), s.as(t, s.variables(t, "oncall")...), nil},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			if way.user != "" {
				operator := forOperator(t, way.name, way.name)
				s.grant(t, map[string][]permission{
					way.user: slices.Concat(forConsumer(t, way.name, way.name)...), way.operator: slices.Concat(operator[0], operator[1]),
				})
			}
			s.incident(t, billing(way.name, way.name, retrytopics.Create, way.consumer...), "tax", "tax", "tax")
			program := *way.program
			program.t = t
			if got := program.rows(append([]string{"summary", way.name + ".dlq"}, way.flags...)...); got[0].number("open") != 3 {
				t.Errorf("the summary is %v, want 3 open letters", got)
			}
			run := program.begin(append([]string{"run", way.name + ".dlq", "--yes", "--by", "ann", "--ramp", "0", "--window", "5s"}, way.flags...)...).ends(0)
			if got := program.rows(append([]string{"runs", way.name + ".dlq"}, way.flags...)...); len(got) != 1 || got[0].number("succeeded") != 3 {
				t.Errorf("the runs are %v, want one with 3 that succeeded; it printed\n%s", got, run.output())
			}
		})
	}
}

// wrongCredentials turns a consumer and the program away, with an error that says what is wrong.
// What may pass by itself, as a certificate that is about to be renewed, is tried again.
func (s *secured) wrongCredentials(t *testing.T) {
	t.Parallel()
	s.user(t, "audit", "secret of audit")
	other := newAuthority(t)
	s.file(t, "other.pem", other.pem)
	ours, theirs := filepath.Join(s.folder, "ca.pem"), filepath.Join(s.folder, "other.pem")
	for name, c := range map[string]struct {
		consumer []kgo.Opt
		words    string // of the error of Run, or in the consumer's log
		program  []string
		hint     string
	}{
		"a wrong password": {
			s.byPassword("audit", "guessed"), "that listener refuses the credentials in kgo.SASL",
			[]string{"--brokers", s.Listener("SCRAM")[0], "--tls-ca", ours, "--sasl", "scram-sha-512", "--sasl-user", "audit"},
			"the broker refuses user audit by SCRAM-SHA-512: check --sasl-user and its secret",
		},
		"an authority that is not trusted": {
			[]kgo.Opt{kgo.SeedBrokers(s.Listener("TLS")...), kgo.DialTLSConfig(other.trusting(host))},
			"certificate signed by unknown authority",
			[]string{"--brokers", s.Listener("TLS")[0], "--tls-ca", theirs},
			"give the authority that signed its certificate by --tls-ca",
		},
		"no certificate": {
			[]kgo.Opt{kgo.SeedBrokers(s.Listener("MTLS")...), kgo.DialTLSConfig(s.ca.trusting(host))},
			"tls: bad certificate",
			[]string{"--brokers", s.Listener("MTLS")[0], "--tls-ca", ours},
			"does it require a certificate (--tls-cert, --tls-key)?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := s.as(t)
			if name == "a wrong password" {
				program.settings = []string{"SIDING_SASL_PASSWORD=guessed"}
			}
			if out := program.begin(append([]string{"topics", "--tls-server-name", host, "--timeout", "5s"}, c.program...)...).ends(1).output(); !strings.Contains(out, c.hint) || strings.Contains(out, "guessed") {
				t.Errorf("it printed %q, want %q in it, and no password", out, c.hint)
			}
			s.says(t, billing("none", "none", retrytopics.Create, c.consumer...), c.words)
		})
	}
}

// says runs a consumer until it says these words in one sentence: by the error of Run, in its
// health, or in a line of its log.
func (s *secured) says(t *testing.T, cfg consumer.Config, words ...string) {
	t.Helper()
	log := new(logged)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	c, err := consumer.New(cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	over := false
	defer func() {
		cancel()
		if !over {
			t.Logf("Run returned %v", <-ended)
		}
	}()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var sentences []string
		select {
		case err := <-ended:
			over, sentences = true, []string{fmt.Sprint(err)} // what a supervisor sees
		default:
			h := c.Health()
			sentences = append(strings.Split(log.String(), "\n"), h.Group.Why, h.Group.CommitError)
			for _, l := range h.Lanes {
				sentences = append(sentences, l.Why)
			}
		}
		for _, text := range sentences {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				t.Logf("it says: %s", text)
				return
			}
		}
		if over || time.Now().After(deadline) {
			t.Fatalf("it does not say %q, but\n%s", words, strings.Join(sentences, "\n"))
		}
	}
}

// consumerLacksOne takes each documented permission from a consumer. It says which one is missing.
func (s *secured) consumerLacksOne(t *testing.T) {
	t.Parallel()
	type lack struct {
		cfg     consumer.Config
		missing permission
	}
	lacks, rights := map[string]lack{}, map[string][]permission{}
	for column, mode := range []retrytopics.Mode{retrytopics.Off, retrytopics.Verify, retrytopics.Create} {
		for i := range forConsumer(t, "x", "x")[column] {
			name := fmt.Sprintf("lack-%d-%d", column, i)
			columns := forConsumer(t, name, "g-"+name)
			l := lack{billing(name, "g-"+name, mode, s.byCertificate(name)...), columns[column][i]}
			lacks[name] = l
			rights["CN="+name] = slices.DeleteFunc(slices.Concat(columns[:column+1]...), func(p permission) bool { return p == l.missing })
		}
	}
	s.grant(t, rights)
	for name, l := range lacks {
		t.Run(strings.ReplaceAll(l.missing.String(), name, "orders"), func(t *testing.T) {
			t.Parallel()
			k := consumertest.On(t, s.Opts()...)
			k.Patience = time.Minute
			k.CreateTopic(name, 1)
			if l.missing.operation != kmsg.ACLOperationCreate {
				s.ensure(t, l.cfg)
			}
			if l.missing.operation == kmsg.ACLOperationAlter { // the siblings have to grow
				if _, err := s.admin.UpdatePartitions(t.Context(), 2, name); err != nil {
					t.Fatal(err)
				}
			}
			k.Produce(&kgo.Record{Topic: name, Value: []byte("later")}, &kgo.Record{Topic: name, Value: []byte("tax")})
			words := []string{l.missing.name, "AUTHORIZATION_FAILED"}
			switch l.missing.operation {
			case kmsg.ACLOperationCreate, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs:
				words = append(words, l.missing.operation.String()) // what fails names the others
			}
			s.says(t, l.cfg, words...)
		})
	}
}

// exactly does everything with exactly the documented permissions: a consumer in each mode of
// Provision, and each verb. A verb that lacks one of its own names it.
func (s *secured) exactly(t *testing.T) {
	t.Parallel()
	const topic = "held"
	rights := map[string][]permission{}
	consumers := map[string]consumer.Config{}
	for column, mode := range []retrytopics.Mode{retrytopics.Off, retrytopics.Verify, retrytopics.Create} {
		name := fmt.Sprintf("%s-%d", topic, column)
		rights["CN="+name] = slices.Concat(forConsumer(t, name, name)[:column+1]...)
		consumers[name] = billing(name, name, mode, s.byCertificate(name)...)
	}
	rights["CN="+topic] = slices.Concat(forConsumer(t, topic, topic)...)
	verbs := []string{"look", "run", "discard", "import", "prune"}
	operator := forOperator(t, topic, topic)
	lacks := map[string]map[string]permission{} // by verb, and by the user who lacks it
	for column, verb := range verbs {
		all := operator[column]
		if column > 0 {
			all = slices.Concat(operator[0], all)
		}
		rights["CN="+verb], lacks[verb] = all, map[string]permission{}
		for i, missing := range operator[column] {
			user := fmt.Sprintf("%s-%d", verb, i)
			lacks[verb][user] = missing
			rights["CN="+user] = slices.DeleteFunc(slices.Clone(all), func(p permission) bool { return p == missing })
		}
	}
	s.grant(t, rights)
	for name, cfg := range consumers {
		t.Run("consumer of "+name, func(t *testing.T) {
			t.Parallel()
			s.incident(t, cfg, "tax")
		})
	}
	t.Run("operator", func(t *testing.T) {
		t.Parallel()
		s.incident(t, billing(topic, topic, retrytopics.Create, s.byCertificate(topic)...), "tax", "tax", "sku", "sku")
		archive := filepath.Join(s.folder, "letters.jsonl")
		dlq := topic + ".dlq"
		for column, commands := range [][][]string{
			{{"summary", dlq}, {"list", dlq}, {"show", dlq, "0:0"}, {"export", dlq}},
			{{"run", dlq, "--class", "tax", "--yes", "--by", "ann", "--ramp", "0", "--window", "1s"}},
			{{"discard", dlq, "--class", "sku", "--why", "OPS-1", "--by", "ann", "--yes"}, {"reopen", dlq, "--class", "sku", "--why", "OPS-2", "--by", "ann", "--yes"}},
			{{"import", dlq, archive, "--keep-timestamps", "--yes"}},
			{{"prune", dlq, "--yes"}},
		} {
			verb := verbs[column]
			for user, missing := range lacks[verb] {
				program := s.as(t, s.variables(t, user)...)
				for _, args := range commands {
					p := program.begin(args...)
					code, out := p.end(), p.output()
					// A letter is shown without its state. A topic that the user may not even see
					// has to become visible first.
					if code == 0 && args[0] != "show" || !strings.Contains(out, " "+missing.name+":") ||
						!strings.Contains(out, fmt.Sprint("needs ", missing.operation)) && !strings.Contains(out, "needs DESCRIBE on ") {
						t.Errorf("without %s %s ended with code %d, want an error that names the permission; it printed\n%s", missing, p, code, out)
					}
				}
			}
			program := s.as(t, s.variables(t, verb)...)
			for _, args := range commands {
				p := program.begin(args...).ends(0)
				if verb == "look" {
					s.file(t, "letters.jsonl", p.stdout.Bytes())
				}
			}
		}
	})
}

// logged keeps a log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// authority signs the certificates of brokers and of their clients.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.pem, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	block, _ := pem.Decode(a.pem)
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a certificate, and the key that it is for. The first one is the authority's own.
func (a *authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, key
	}
	c.SerialNumber, c.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), true
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	must(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// issue returns a certificate for a name and its key, as PEM. A broker's certificate is for its
// host name; a client's user has the name CN=<name>.
func (a *authority) issue(name string) (cert, key []byte) {
	a.t.Helper()
	cert, private := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(a.t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// trusting is the configuration of a client of the host that trusts the authority.
func (a *authority) trusting(host string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
}

// as is the same of a client with a certificate for a name.
func (a *authority) as(name, host string) *tls.Config {
	a.t.Helper()
	cert, err := tls.X509KeyPair(a.issue(name))
	must(a.t, err)
	c := a.trusting(host)
	c.Certificates = []tls.Certificate{cert}
	return c
}

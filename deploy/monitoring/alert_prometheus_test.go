package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
)

// faster divides the durations of the alerts.
const faster = 60

// scene is a cluster with services, a server and a Prometheus that scrapes all of them.
type scene struct {
	t      *testing.T
	ctx    context.Context
	prefix string // of topics and groups, since a real cluster may be used again
	opts   []kgo.Opt
	cl     *kgo.Client
	broken atomic.Bool // orders, refunds, payments and returns fail
	down   atomic.Bool // parcels fail, as all things in an outage do, and half of the pallets
	// ghostWell says that the group that is there by its metrics only is well.
	ghostWell atomic.Bool
	hang      chan struct{} // closed by release, when handlers that hang may return
	release   func()
	meters    *sdkmetric.MeterProvider
	expose    *prometheus.Registry
	prom      string // Prometheus's address
	messages  chan message
}

type message struct{ Title, State, Key, Link string }

// Dead letters come, one of a critical topic among them, a run fails, a rule gives up, one lane is
// stuck and another one blocked: each alert fires in a Prometheus that scrapes services and server.
// Then all is repaired, and each resolves. Meanwhile each query of the boards has returned data,
// and a webhook got one message of each incident, and one that it is over.
func TestAlerts_FireAndResolveInPrometheus(t *testing.T) {
	if os.Getenv("SIDING_MONITORING") == "" {
		t.Skip("make monitoring runs this: it takes two minutes")
	}
	s := newScene(t)
	s.services()
	unblock := s.breakReturns()
	// They count as new for forty seconds more, since a test cannot wait for five minutes. What a
	// server sees come would count from then on.
	s.letters("bursts", 60, 260*time.Second)
	s.server()
	s.prometheus()
	s.breakAll()
	// One letter of a critical topic is one too many. Lanes do not run for several reasons.
	want := map[string]bool{
		"SidingDeadLettersWarn audits.dlq": true, "SidingDeadLettersPage payments.dlq": true,
		"SidingLaneDoesNotRun stuck": true, "SidingLaneDoesNotRun blocked": true, "SidingHeld parcels": true, "SidingStrained pallets": true,
	}
	for _, a := range alerts(t).All() {
		want[a.Name] = true
	}
	fired, empty := map[string]bool{}, queries(t)
	s.until(90*time.Second, func() string {
		maps.Copy(fired, s.firing())
		s.ask(empty)
		return missing(want, fired)
	})
	t.Log("each alert has fired")
	for _, source := range []string{"payments", "orders"} {
		if fired["SidingDeadLettersWarn "+source+".dlq"] {
			t.Errorf("%s.dlq pages, and warned besides", source)
		}
	}
	if fired["SidingHeld pallets"] {
		t.Error("half of the pallets fail, and the others waited")
	}
	for _, source := range []string{"parcels", "pallets"} {
		if fired["SidingRecordsAreRetried "+source] {
			t.Errorf("%s are held or strained, and a second alert says that they are retried", source)
		}
	}
	s.ghostWell.Store(true)
	unblock()
	s.repair()
	s.until(90*time.Second, func() string {
		s.ask(empty)
		s.discard()
		var left []string
		for q, why := range empty {
			left = append(left, q+": "+why)
		}
		return strings.Join(append(left, slices.Sorted(maps.Keys(s.firing()))...), "\n")
	})
	t.Log("each alert has resolved, and each query of the boards has returned data")
	s.notified()
}

func missing(want, got map[string]bool) string {
	left := maps.Clone(want)
	for name := range got {
		delete(left, name)
	}
	return strings.Join(slices.Sorted(maps.Keys(left)), "\n")
}

// until waits until nothing is missing.
func (s *scene) until(atMost time.Duration, missing func() string) {
	s.t.Helper()
	left := missing()
	for end := time.Now().Add(atMost); left != ""; left = missing() {
		if time.Now().After(end) {
			s.t.Fatalf("after %v there is left:\n%s", atMost, left)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, ctx: t.Context(), hang: make(chan struct{}), messages: make(chan message, 1000)}
	s.release = sync.OnceFunc(func() { close(s.hang) })
	var brokers []string
	if b := os.Getenv("SIDING_MONITORING_BROKERS"); b != "" {
		brokers, s.prefix = strings.Split(b, ","), fmt.Sprintf("monitoring-%d.", time.Now().UnixNano())
	} else {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		s.must(err)
		t.Cleanup(fake.Close)
		brokers = fake.ListenAddrs()
	}
	s.opts = []kgo.Opt{kgo.SeedBrokers(brokers...)}
	var err error
	s.cl, err = kgo.NewClient(append(s.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	s.must(err)
	t.Cleanup(s.cl.Close)
	admin := kadm.NewClient(s.cl)
	create := func(configs map[string]*string, topics ...string) {
		for _, topic := range topics {
			_, err := admin.CreateTopic(s.ctx, 2, -1, configs, s.prefix+topic)
			s.must(err)
		}
	}
	ms := strconv.FormatInt((47 * time.Hour).Milliseconds(), 10)
	create(map[string]*string{"retention.ms": &ms}, "audits.dlq")
	create(nil, "orders", "refunds", "invoices", "payments", "returns", "parcels", "pallets", "audits", "audits.dlq.ledger", "bursts", "bursts.dlq", "bursts.dlq.ledger")
	s.expose = prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(s.expose))
	s.must(err)
	s.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s.broken.Store(true)
	s.down.Store(true)
	return s
}

// runs runs something until the test ends.
func (s *scene) runs(what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("%s: %v", what, err)
		}
	})
}

func (s *scene) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// breakReturns deletes the topic of the dead letters of returns, so a lane of theirs is blocked. It
// returns what makes the topic again.
func (s *scene) breakReturns() (unblock func()) {
	admin, topic := kadm.NewClient(s.cl), s.prefix+"returns.dlq"
	_, err := admin.DeleteTopic(s.ctx, topic)
	s.must(err)
	return func() {
		_, err := admin.CreateTopic(s.ctx, 2, -1, nil, topic)
		s.must(err)
	}
}

// services runs two services: billing, whose records fail as their values say, and
// shipping, whose parcels and heavy pallets fail in an outage.
func (s *scene) services() {
	run := func(cfg consumer.Config) {
		cfg.Kafka, cfg.MeterProvider, cfg.Logger = s.opts, s.meters, s.log()
		c, err := consumer.New(cfg)
		s.must(err)
		s.runs("service "+cfg.Group, c.Run)
	}
	run(consumer.Config{
		Group: s.prefix + "billing", Topics: []string{s.prefix + "orders", s.prefix + "refunds", s.prefix + "invoices", s.prefix + "payments", s.prefix + "returns"},
		Policy: consumer.Policy{Tiers: []time.Duration{2 * time.Second}, HandlerTimeout: time.Second, Breaker: consumer.Breaker{Off: true}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch value := string(r.Value); {
			case value == "hang" && consumer.DeliveryOf(ctx, r).Attempt == 1:
				<-s.hang // it ignores its context
			case value == "busy" && consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.As(classify.Retryable(errors.New("the gateway is busy")), "gateway.busy")
			case value == "order" && s.broken.Load():
				return classify.Terminal(classify.As(errors.New("no rate for the region"), "tax.TableMiss"))
			case (value == "payment" || value == "return") && s.broken.Load():
				return classify.Terminal(classify.As(errors.New("the bank said no"), "bank.Declined"))
			case value == "refund" && s.broken.Load():
				return classify.Terminal(classify.As(errors.New("service unavailable"), "http.503"))
			}
			return nil
		},
	})
	run(consumer.Config{
		Group: s.prefix + "shipping", Topics: []string{s.prefix + "parcels", s.prefix + "pallets"},
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second}},
		Handler: func(_ context.Context, r *kgo.Record) error {
			if s.down.Load() && string(r.Value) != "pallet" {
				return classify.Retryable(errors.New("connection refused"))
			}
			return nil
		},
	})
	s.t.Cleanup(s.release)
	r, err := redrive.New(redrive.Config{Kafka: s.opts})
	s.must(err)
	s.until(30*time.Second, func() string { // the services have made their topics
		topics, err := r.Topics(s.ctx)
		s.must(err)
		n := 0
		for _, t := range topics {
			if strings.HasPrefix(t.Topic, s.prefix) {
				n++
			}
		}
		if n < 9 {
			return fmt.Sprintf("%d of 9 dead-letter topics", n)
		}
		return ""
	})
}

// server runs redrive serve, with a rule and a webhook.
func (s *scene) server() {
	rules := filepath.Join(s.t.TempDir(), "rules.yaml")
	s.must(os.WriteFile(rules, fmt.Appendf(nil, "rules: [{name: gateway, topics: '%srefunds.dlq', classes: [http.503], cool-down: 1s, window: 1s, wait: 5s, max-wait: 5s, max-replays: 100}]", s.prefix), 0o600))
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			s.t.Error(err)
		}
		s.messages <- m
	}))
	s.t.Cleanup(hook.Close)
	s.t.Setenv("SIDING_MONITORING_HOOK", "generic+"+hook.URL+"?template=json")
	server, err := serve.New(serve.Config{
		Kafka: s.opts, Listen: "127.0.0.1:0", Group: s.prefix + "siding-serve", Refresh: 500 * time.Millisecond, RulesFile: rules, URL: "https://siding.example.com/",
		Topics: []serve.Topic{
			{Match: s.prefix + "payments*", Criticality: serve.Critical, Alerts: serve.Thresholds{NewClass: 40 * time.Second}},
			{Match: s.prefix + "*", Alerts: serve.Thresholds{WarnOpen: 3, PageOpen: 5, Oldest: 8 * time.Second, NewClass: 40 * time.Second}},
		},
		Notify: []serve.Receiver{{Name: "hook", URLEnv: "SIDING_MONITORING_HOOK", Topics: s.prefix + "*"}},
	}, s.log())
	s.must(err)
	l, err := server.Listen()
	s.must(err)
	s.prom = l.Addr().String()
	s.runs("server", func(ctx context.Context) error { return server.Serve(ctx, l) })
}

// prometheus runs Prometheus over the services and the server. s.prom is the server's address
// before, and Prometheus's after.
func (s *scene) prometheus() {
	program := tool(s.t, "prometheus")
	services := httptest.NewServer(promhttp.HandlerFor(s.expose, promhttp.HandlerOpts{}))
	s.t.Cleanup(services.Close)
	ghost := httptest.NewServer(s.ghost())
	s.t.Cleanup(ghost.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	address := free.Addr().String()
	s.must(free.Close())
	dir := s.t.TempDir()
	text, err := alerts(s.t).Faster(faster).Text()
	s.must(err)
	s.must(os.WriteFile(filepath.Join(dir, "alerts.yaml"), text, 0o600))
	s.must(os.WriteFile(filepath.Join(dir, "prometheus.yaml"), fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - {job_name: siding, static_configs: [{targets: [%q]}]}
  - {job_name: services, static_configs: [{targets: [%q]}]}
  - {job_name: ghosts, static_configs: [{targets: [%q]}]}
`, s.prom, strings.TrimPrefix(services.URL, "http://"), strings.TrimPrefix(ghost.URL, "http://")), 0o600))
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=error")
	cmd.Stdout, cmd.Stderr = s.t.Output(), s.t.Output()
	s.must(cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	s.prom = address
	s.until(30*time.Second, func() string {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return err.Error()
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		return ""
	})
}

// ghost answers with the metrics of a consumer that fails in all ways which this scene has no time,
// or no broker, to bring about: [TestAlerts_NameWhatExists] holds their names to what siding has.
func (s *scene) ghost() http.Handler {
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		bad := 0
		state := "joined"
		if !s.ghostWell.Load() {
			n++
			bad, state = 1, "joining"
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		const of = `messaging_consumer_group_name="ghosts",messaging_destination_name="ghosts"`
		fmt.Fprintf(w, "siding_handlers_stuck{messaging_consumer_group_name=\"ghosts\"} %d\n", bad)
		fmt.Fprintf(w, "siding_members{messaging_consumer_group_name=\"ghosts\",siding_member_state=%q} 1\n", state)
		fmt.Fprintf(w, "siding_omitted_values_total{%s} %d\nsiding_expired_records_total{%s} %d\n", of, n, of, n)
		fmt.Fprintf(w, "siding_held_full{%s} %d\n", of, bad)
		fmt.Fprintf(w, "siding_retries_held{%s} %d\nsiding_forwards_inflight{%s} %d\n", of, bad, of, 500*bad)
		fmt.Fprintf(w, "siding_offset_gaps{%s,siding_tier=\"\"} %d\nsiding_lag{%s,siding_tier=\"\"} %d\n", of, 100*n, of, 100*n)
		fmt.Fprintf(w, "siding_notifications_given_up_total{messaging_destination_name=\"ghosts.dlq\",siding_receiver_name=\"a\"} %d\n", n)
		fmt.Fprintf(w, "siding_handled_records_total{%s} 0\n", of)
		for to, times := range map[string]int{"dlq": 1, "2s": 2} {
			fmt.Fprintf(w, "siding_routed_records_total{%s,siding_to=%q} %d\n", of, to, times*n)
		}
		for le, count := range map[string]int{"5": n, "30": 9 * n, "+Inf": 9 * n} {
			fmt.Fprintf(w, "siding_delivery_lateness_seconds_bucket{%s,le=%q} %d\n", of, le, count)
		}
	})
}

// breakAll produces what fails, and goes on producing what is retried and succeeds.
func (s *scene) breakAll() {
	produce := func(topic, value string, n int) {
		for i := range n {
			s.cl.Produce(s.ctx, &kgo.Record{Topic: s.prefix + topic, Partition: int32(i % 2), Value: []byte(value)}, nil)
		}
	}
	// Each topic is strained at once, so no record of it is dead-lettered.
	produce("parcels", "parcel", 200)
	produce("pallets", "heavy pallet", 100)
	produce("orders", "order", 6)
	produce("refunds", "refund", 2)
	produce("payments", "payment", 1)
	produce("returns", "return", 1)
	produce("invoices", "hang", 1)
	s.must(s.cl.Flush(s.ctx))
	s.letters("audits", 3, 0) // as many as warn, and fewer than page
	s.leaves()
	s.runs("producer", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(200 * time.Millisecond):
				produce("orders", "fine", 3)
				produce("orders", "busy", 2)
				// Nearly all of five seconds have to fail for a hold.
				produce("parcels", "parcel", 8)
				produce("pallets", "pallet", 4)
				produce("pallets", "heavy pallet", 4)
			}
		}
	})
	s.until(30*time.Second, func() string { return s.lacks("siding_dead_letters_open", "orders.dlq", 6) })
	if failed := s.redrive(); !failed {
		s.t.Error("the run did not fail")
	}
}

// age is a hook of a client that dates its records back.
type age time.Duration

func (a age) OnProduceRecordBuffered(r *kgo.Record) {
	r.Timestamp = r.Timestamp.Add(-time.Duration(a))
}

// letters writes letters that are as old as that.
func (s *scene) letters(source string, n int, old time.Duration) {
	cl, err := kgo.NewClient(append(s.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.WithHooks(age(old)))...)
	s.must(err)
	defer cl.Close()
	w := dlq.NewWriter(cl, s.prefix+source+".dlq")
	done := make(chan error, n)
	for i := range n {
		at := time.Now().Add(-old)
		w.Write(s.ctx, &kgo.Record{Topic: s.prefix + source, Offset: int64(i), Value: []byte("v")}, headers.Meta{
			Original: headers.Position{Topic: s.prefix + source, Offset: int64(i)}, Group: s.prefix + "billing", Attempts: 1, Class: "decode",
			Message: "unexpected end of JSON", Reason: headers.ReasonTerminal, FirstFailedAt: at, FailedAt: at,
		}, func(err error) { done <- err })
	}
	for range n {
		s.must(<-done)
	}
}

// redrive redrives the orders, and reports whether the run aborted because one failed again.
func (s *scene) redrive() (failed bool) {
	r, err := redrive.New(redrive.Config{Kafka: s.opts, Logger: s.log()})
	s.must(err)
	plan, err := r.Plan(s.ctx, redrive.Selection{Topic: s.prefix + "orders.dlq"})
	s.must(err)
	_, err = r.Run(s.ctx, plan, redrive.RunOptions{By: "ada", Why: "the rate is there", Pace: redrive.Pace{Window: time.Second, Ramp: time.Second}})
	var again *redrive.FailedAgainError
	if errors.As(err, &again) {
		return true
	}
	s.must(err)
	return false
}

// leaves adds a group without members, behind a transaction that is open, as its commit says.
func (s *scene) leaves() {
	offsets := kadm.Offsets{}
	for p := range int32(2) {
		offsets.Add(kadm.Offset{Topic: s.prefix + "refunds", Partition: p, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1 f=0" + commitmark.Lane{OpenSince: time.Now()}.Field()})
	}
	s.must(kadm.NewClient(s.cl).CommitAllOffsets(s.ctx, s.prefix+"gone", offsets))
}

// repair repairs the services, and redrives the orders.
func (s *scene) repair() {
	s.broken.Store(false)
	s.down.Store(false)
	s.release()
	_, err := kadm.NewClient(s.cl).DeleteGroup(s.ctx, s.prefix+"gone")
	s.must(err)
	if s.redrive() {
		s.t.Error("the run failed")
	}
}

// discard discards all letters but those of refunds, which a rule brings home.
func (s *scene) discard() {
	for _, source := range []string{"orders", "audits", "bursts", "parcels", "pallets", "payments", "returns"} {
		l := dlq.NewLedger(s.prefix+source+".dlq", s.prefix+source+".dlq.ledger", s.opts...)
		_, err := l.Discard(s.ctx, dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "looked at"})
		s.must(err)
	}
}

// get asks Prometheus's API.
func (s *scene) get(path string, values url.Values, into any) error {
	resp, err := http.Get("http://" + s.prom + path + "?" + values.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// firing returns the names of the alerts that fire, each also with the topic or the state of lanes
// behind it.
func (s *scene) firing() map[string]bool {
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	s.must(s.get("/api/v1/alerts", nil, &answer))
	names := map[string]bool{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			name, of := a.Labels["alertname"], a.Labels["messaging_destination_name"]+a.Labels["siding_lane_state"]
			names[name], names[name+" "+strings.TrimPrefix(of, s.prefix)] = true, true
		}
	}
	return names
}

// values returns the samples of a query that are numbers.
func (s *scene) values(query string) (all []float64, err error) {
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := s.get("/api/v1/query", url.Values{"query": {query}}, &answer); err != nil {
		return nil, err
	}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all, nil
}

// lacks returns what a topic lacks to a number of letters; empty if it has them.
func (s *scene) lacks(metric, topic string, n float64) string {
	all, err := s.values(fmt.Sprintf(`sum(%s{messaging_destination_name=%q})`, metric, s.prefix+topic))
	if err != nil || len(all) != 1 || all[0] < n {
		return fmt.Sprintf("%s of %s is %v, want %v; %v", metric, topic, all, n, err)
	}
	return ""
}

// queries returns all queries of the boards, each with why it has no data.
func queries(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, b := range readBoards(t) {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				all[q.Filled("20s")] = "panel " + p.Title
			}
		}
	}
	return all
}

// ask asks Prometheus queries, and deletes those that return data.
func (s *scene) ask(empty map[string]string) {
	for query := range empty {
		all, err := s.values(query)
		if err != nil {
			s.t.Errorf("%s: %v", query, err)
		}
		if len(all) > 0 {
			delete(empty, query)
		}
	}
}

// notified waits until the webhook has a message that each incident is over. It may get none twice
// in the same words.
func (s *scene) notified() {
	begun, over := map[string]message{}, map[string]bool{}
	titles := map[string]int{}
	s.until(90*time.Second, func() string {
		for len(s.messages) > 0 {
			m := <-s.messages
			titles[m.Title+" "+m.Key+" "+m.State]++
			if m.State == "over" {
				over[m.Key] = true
			} else {
				begun[m.Key] = m
			}
		}
		var left []string
		for key, m := range begun {
			if !over[key] {
				left = append(left, m.Title)
			}
		}
		return strings.Join(left, "\n")
	})
	for title, n := range titles {
		if n > 1 {
			s.t.Errorf("%d messages: %s", n, title)
		}
	}
	for key, m := range begun {
		if !strings.HasPrefix(m.Link, "https://siding.example.com/topics/"+s.prefix) || key == "" {
			s.t.Errorf("%q has the link %q", m.Title, m.Link)
		}
	}
	if len(begun) < 10 {
		s.t.Errorf("messages of %d incidents: %v", len(begun), begun)
	}
	s.t.Logf("the webhook got messages of %d incidents", len(begun))
}

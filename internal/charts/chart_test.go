package charts

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/twmb/franz-go/pkg/kgo"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/sidingkafka/siding/serve"
)

var update = flag.Bool("update", false, "write the manifests and the generated parts of the chart again")

const (
	deploy   = "../../deploy"
	chartDir = deploy + "/helm/siding-serve"
	howTo    = "go test -C internal/charts . -update writes it"
)

func load(t *testing.T) *Chart {
	t.Helper()
	c, err := Load(chartDir)
	must(t, err)
	return c
}

// values are values of the chart, as people write them and Helm reads them.
func values(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	numbers := func(d *json.Decoder) *json.Decoder {
		d.UseNumber()
		return d
	}
	must(t, yaml.UnmarshalStrict([]byte(text), &v, numbers))
	return v
}

// everything is a release with all that the chart has.
const everything = `
kafka:
  brokers: [kafka-1:9093, kafka-2:9093]
  options: {tls-ca: /etc/siding/kafka/ca.crt, sasl: SCRAM-SHA-512, sasl-user: siding, sasl-password-file: /etc/siding/kafka/password, tls: true}
  secret: siding-kafka
tls: {secret: siding-tls}
config:
  refresh: 5s
  topics: [{match: payments*, criticality: critical, manual-only: true, alerts: {oldest: 30m, page-open: 1000000}}]
  redact: {paths: [..card], headers: [authorization]}
  notify: [{name: chat, url-env: CHAT_URL}]
  access:
    oidc: {issuer: https://login.example.com, client-id: siding, groups: {oncall: [{role: operator, topics: [payments*]}], "*": [{role: viewer}]}}
rules: [{name: gateway, topics: payments*, classes: [http.503], times: [Mon-Fri 08:00-18:00], zone: Europe/Berlin, rate: 20}]
env: [{name: CHAT_URL, valueFrom: {secretKeyRef: {name: siding-chat, key: url}}}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
imagePullSecrets: [{name: registry}]
ingress: {enabled: true, className: nginx, annotations: {a: b}, host: siding.example.com, tlsSecret: siding-example-com}
serviceMonitor: {enabled: true, labels: {release: prometheus}, token: {secret: siding-prometheus}, tlsConfig: {insecureSkipVerify: true}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {}}], egress: [{ports: [{port: 9093}]}]}
podAnnotations: {a: b}
podLabels: {team: payments}
nodeSelector: {a: b}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
service: {annotations: {a: b}}
serviceAccount: {annotations: {a: b}}
`

// rendered returns the objects of a release by the name of their template. Each is what Kubernetes
// knows by that name, without a field that it does not know.
func rendered(t *testing.T, v map[string]any) map[string]runtime.Object {
	t.Helper()
	made, err := load(t).Render(v)
	must(t, err)
	delete(made, "NOTES.txt")
	known := runtime.NewScheme()
	must(t, scheme.AddToScheme(known))
	must(t, monitoring.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	objects := map[string]runtime.Object{}
	for name, text := range made {
		o, _, err := decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		objects[name] = o
	}
	return objects
}

func TestChart_HasNothingThatHelmReports(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", everything} {
		for _, m := range lint.RunAll(chartDir, values(t, text), "kafka").Messages {
			t.Error(m)
		}
	}
}

// A pod may do nothing but what it needs, and both probes ask the server.
func TestChart_PodsAreRestricted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", everything} {
		objects := rendered(t, values(t, text))
		d, ok := objects["deployment.yaml"].(*apps.Deployment)
		if !ok {
			t.Fatalf("there is no Deployment: %v", slices.Sorted(maps.Keys(objects)))
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if *d.Spec.Replicas != 2 || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 ||
			pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *c.SecurityContext.AllowPrivilegeEscalation ||
			!*c.SecurityContext.ReadOnlyRootFilesystem || !slices.Equal(c.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}) ||
			c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("the pod is %+v", pod)
		}
		wantScheme := core.URISchemeHTTP
		if pod.Volumes[len(pod.Volumes)-1].Name == "more" {
			wantScheme = core.URISchemeHTTPS
		}
		for path, probe := range map[string]*core.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if get := probe.HTTPGet; get.Path != path || get.Port.String() != c.Ports[0].Name || get.Scheme != wantScheme {
				t.Errorf("the probe of %s is %+v", path, get)
			}
		}
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("there is no volume %s", m.Name)
			}
			delete(volumes, m.Name)
		}
		if len(volumes) > 0 {
			t.Errorf("volumes are mounted nowhere: %v", volumes)
		}
	}
}

// The objects name each other as they are named.
func TestChart_ObjectsFitTogether(t *testing.T) {
	t.Parallel()
	objects := rendered(t, values(t, everything))
	d := objects["deployment.yaml"].(*apps.Deployment)
	labels := d.Spec.Template.Labels
	fits := func(what string, selector map[string]string) {
		t.Helper()
		for k, v := range selector {
			if labels[k] != v {
				t.Errorf("the %s selects %s=%s, which the pod lacks", what, k, v)
			}
		}
		if len(selector) == 0 {
			t.Errorf("the %s selects everything", what)
		}
	}
	s := objects["service.yaml"].(*core.Service)
	monitor := objects["servicemonitor.yaml"].(*monitoring.ServiceMonitor)
	fits("Deployment", d.Spec.Selector.MatchLabels)
	fits("Service", s.Spec.Selector)
	fits("PodDisruptionBudget", objects["poddisruptionbudget.yaml"].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels)
	fits("NetworkPolicy", objects["networkpolicy.yaml"].(*networking.NetworkPolicy).Spec.PodSelector.MatchLabels)
	labels = s.Labels
	fits("ServiceMonitor", monitor.Spec.Selector.MatchLabels)
	if e := monitor.Spec.Endpoints[0]; e.Port != s.Spec.Ports[0].Name || e.Path != "/metrics" || e.Authorization.Credentials.Name != "siding-prometheus" {
		t.Errorf("Prometheus asks %+v", e)
	}
	if at := objects["ingress.yaml"].(*networking.Ingress).Spec.Rules[0].HTTP.Paths[0].Backend.Service; at.Name != s.Name || at.Port.Name != s.Spec.Ports[0].Name {
		t.Errorf("the Ingress leads to %+v", at)
	}
	if d.Spec.Template.Spec.ServiceAccountName != objects["serviceaccount.yaml"].(*core.ServiceAccount).Name {
		t.Error("the pod has another ServiceAccount")
	}
	env := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	want := map[string]string{
		"SIDING_BROKERS": "kafka-1:9093,kafka-2:9093", "SIDING_SASL": "SCRAM-SHA-512", "SIDING_SASL_USER": "siding", "SIDING_TLS": "true",
		"SIDING_TLS_CA": "/etc/siding/kafka/ca.crt", "SIDING_SASL_PASSWORD_FILE": "/etc/siding/kafka/password", "CHAT_URL": "",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	made := slices.Sorted(maps.Keys(objects))
	templates, err := filepath.Glob(chartDir + "/templates/*.yaml")
	if err != nil || len(made) != len(templates) {
		t.Errorf("of the templates %v, only %v are tried (%v)", templates, made, err)
	}
}

// writeAll writes what pods have below /etc/siding into one folder.
func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, content := range files {
		for _, below := range []string{"tokens", "session"} {
			content = strings.ReplaceAll(content, "/etc/siding/"+below+"/", dir+"/")
		}
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
	}
}

// cluster is one in which a release is installed.
type cluster struct{ *fake.FakeDynamicClient }

// GetClientFor implements engine.ClientProvider. Only Secrets are looked up.
func (c cluster) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if version != "v1" || kind != "Secret" {
		return nil, false, fmt.Errorf("the chart looks up a %s of %s", kind, version)
	}
	return c.Resource(core.SchemeGroupVersion.WithResource("secrets")), true, nil
}

// installed returns a cluster with objects, in the namespace of the tests' release.
func installed(objects ...*core.Secret) cluster {
	var all []runtime.Object
	for _, o := range objects {
		o = o.DeepCopy()
		o.Namespace = "kafka"
		all = append(all, o)
	}
	return cluster{fake.NewSimpleDynamicClient(scheme.Scheme, all...)}
}

// By default two servers run. Without a key of sessions each made one of its own, so the other
// server did not know a user who signed in at the first. An upgrade that made a new key would sign
// all users out.
func TestChart_AllServersHaveOneKeyOfSessions(t *testing.T) {
	t.Parallel()
	first, ok := rendered(t, nil)["session.yaml"].(*core.Secret)
	if !ok {
		t.Fatal("by default there is no Secret with a key of sessions")
	}
	key := first.Data["session.key"]
	if other := rendered(t, nil)["session.yaml"].(*core.Secret).Data["session.key"]; len(key) < 32 || bytes.Equal(key, other) {
		t.Errorf("two releases have the keys %x and %x", key, other)
	}
	upgraded, err := load(t).RenderIn(installed(first), nil)
	if err != nil || !strings.Contains(upgraded["session.yaml"], base64.StdEncoding.EncodeToString(key)) {
		t.Errorf("after an upgrade the Secret is %s, %v", upgraded["session.yaml"], err)
	}
	elsewhere := first.DeepCopy()
	elsewhere.Name = "another"
	if made, err := load(t).RenderIn(installed(elsewhere), nil); err != nil || strings.Contains(made["session.yaml"], base64.StdEncoding.EncodeToString(key)) {
		t.Errorf("with the key of another release: %s, %v", made["session.yaml"], err)
	}
	long := "fullnameOverride: " + strings.Repeat("a", 63)
	for text, want := range map[string]string{
		"session: null":           "siding-serve-session", // from a chart without it
		"{}":                      "siding-serve-session",
		"session: {secret: ours}": "ours",
		long:                      strings.Repeat("a", 55) + "-session",
		"config: {access: {session-key-file: /more/own.key}}": "",
	} {
		objects := rendered(t, values(t, text))
		secret, made := objects["session.yaml"].(*core.Secret)
		mounted := ""
		for _, v := range objects["deployment.yaml"].(*apps.Deployment).Spec.Template.Spec.Volumes {
			if v.Name == "session" {
				mounted = v.Secret.SecretName
			}
		}
		if mounted != want || made != (want != "" && want != "ours") || made && secret.Name != want {
			t.Errorf("%s: the pods mount %q, and the chart makes %+v; want %q", text, mounted, secret, want)
		}
	}
	// kubectl apply takes the Secret of the operator who set the server up, and leaves it as it is.
	text, err := load(t).Manifests()
	if err != nil || strings.Contains(text, "kind: Secret") || !strings.Contains(text, "secretName: siding-serve-session,") {
		t.Errorf("the manifests are %s, %v", text, err)
	}
}

// A user who signs in at one server of the default release is known to the other.
func TestChart_ASessionHoldsOnBothServers(t *testing.T) {
	t.Parallel()
	objects, dir := rendered(t, nil), t.TempDir()
	files := maps.Clone(objects["configmap.yaml"].(*core.ConfigMap).Data)
	files["tokens.yaml"] = fmt.Sprintf("tokens: [{name: ada, sha256: %x, grants: [{role: viewer}]}]\n", sha256.Sum256([]byte("secret")))
	if secret, ok := objects["session.yaml"].(*core.Secret); ok {
		files["session.key"] = string(secret.Data["session.key"])
	}
	writeAll(t, dir, files)
	var both [2]http.Handler
	for i := range both {
		cfg, err := serve.Load(filepath.Join(dir, "serve.yaml"))
		must(t, err)
		cfg.Kafka = []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")} // nothing runs that asks them
		s, err := serve.New(cfg, slog.New(slog.DiscardHandler))
		must(t, err)
		both[i] = s.Handler()
	}
	form := httptest.NewRequest(http.MethodPost, "/sign-in", strings.NewReader("token=secret"))
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signedIn := httptest.NewRecorder()
	both[0].ServeHTTP(signedIn, form)
	if signedIn.Code != http.StatusSeeOther || len(signedIn.Result().Cookies()) != 1 {
		t.Fatalf("signing in: %d %v", signedIn.Code, signedIn.Result().Cookies())
	}
	for i, h := range both {
		page := httptest.NewRequest(http.MethodGet, "/audit", nil)
		page.AddCookie(signedIn.Result().Cookies()[0])
		w := httptest.NewRecorder()
		h.ServeHTTP(w, page)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "token ada") {
			t.Errorf("server %d answers with %d to whoever signed in at server 0", i, w.Code)
		}
	}
}

// The server accepts the configuration that the chart makes.
func TestChart_ConfigurationIsTheServers(t *testing.T) {
	t.Setenv("CHAT_URL", "generic://127.0.0.1:1/")
	for name, text := range map[string]string{
		"defaults": "{}", "everything but TLS": everything + "\n", "only OIDC": "tokens: {secret: ''}\nconfig: {access: {oidc: {issuer: https://a.example.com, client-id: a}}}",
	} {
		v := values(t, text)
		delete(v, "tls")
		cm := rendered(t, v)["configmap.yaml"].(*core.ConfigMap)
		dir := t.TempDir()
		files := maps.Clone(cm.Data)
		files["tokens.yaml"] = "tokens: [{name: a, sha256: " + strings.Repeat("a", 64) + ", grants: [{role: viewer}]}]\n"
		files["session.key"] = strings.Repeat("k", 32)
		writeAll(t, dir, files)
		cfg, err := serve.Load(filepath.Join(dir, "serve.yaml"))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, cm.Data["serve.yaml"])
		}
		if cfg.Listen != ":8642" || len(cm.Data["rules.yaml"]) > 0 != (cfg.RulesFile != "") {
			t.Errorf("%s: %+v", name, cfg)
		}
		if name == "everything but TLS" && (cfg.URL != "https://siding.example.com" || cfg.Topics[0].Alerts.Oldest.Minutes() != 30 || cfg.Topics[0].Alerts.PageOpen != 1000000 || cfg.Access.OIDC == nil || cfg.Access.TokensFile == "") {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
	if cm := rendered(t, values(t, everything))["configmap.yaml"].(*core.ConfigMap); !strings.Contains(cm.Data["serve.yaml"], "cert-file: /etc/siding/tls/tls.crt\n") {
		t.Errorf("without the certificate: %s", cm.Data["serve.yaml"])
	}
}

// What could not work is refused before it is installed, with what to do.
func TestChart_RefusesWhatCouldNotWork(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tokens: {secret: ''}":                    "nobody could use the server: set tokens.secret",
		"serviceMonitor: {enabled: true}":         "Prometheus could not read the metrics: set serviceMonitor.token.secret",
		"replicas: 3":                             "additional properties 'replicas' not allowed",
		"config: {listn: x}":                      "additional properties 'listn' not allowed",
		"config: {topics: [{criticality: high}]}": "missing property 'match'",
		"config: {refresh: soon}":                 "'soon' does not match pattern",
		"rules: [{name: a, topics: b}]":           "missing property 'classes'",
		"kafka: {options: {sasl-password: x}}":    "sasl-password",
		"kafka: {brokers: []}":                    "minItems",
	} {
		_, err := load(t).Render(values(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The chart has the alerts of deploy/prometheus, and the schemas of the server's files.
func TestChart_HasTheAlertsAndSchemas(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile(deploy + "/prometheus/alerts.yaml")
	must(t, err)
	compare(t, chartDir+"/files/alerts.yaml", string(alerts))

	rule := rendered(t, values(t, "prometheusRule: {enabled: true}"))["prometheusrule.yaml"].(*monitoring.PrometheusRule)
	if len(rule.Spec.Groups) == 0 {
		t.Error("there are no rules")
	}
	const file = chartDir + "/values.schema.json"
	text, err := os.ReadFile(file)
	must(t, err)
	var schema map[string]any
	must(t, json.Unmarshal(text, &schema))
	defs := map[string]any{}
	for _, name := range []string{"serve", "rules"} {
		text, err := os.ReadFile(deploy + "/schema/" + name + ".schema.json")
		must(t, err)
		var is map[string]any
		must(t, json.Unmarshal(text, &is))
		delete(is, "$schema")
		if defs[name] = is; name == "rules" {
			defs[name] = is["properties"].(map[string]any)["rules"]
		}
	}
	schema["$defs"] = defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must(t, e.Encode(schema))
	compare(t, file, b.String())
}

// The manifests are what the chart makes of its default values.
func TestManifests_AreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	text, err := load(t).Manifests()
	must(t, err)
	compare(t, deploy+"/kubernetes/siding-serve.yaml", text)
}

// compare compares a file with what is generated, or writes it with -update.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s: %s (-want +got):\n%s", file, howTo, diff)
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

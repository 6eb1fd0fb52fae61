package serve_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/payload"
	"github.com/sidingkafka/siding/serve/registry"
)

// registered is a cluster whose letter 1/0 has a value in Avro, and a server's configuration with
// the registry of its schema.
func registered(t *testing.T) (*cluster, *srfake.Registry, serve.Config) {
	t.Helper()
	r := srfake.New()
	t.Cleanup(r.Close)
	r.SeedSchema("orders-value", 1, 7, sr.Schema{Type: sr.TypeAvro, Schema: `{"type":"record","name":"Order","fields":[{"name":"card","type":"string"},{"name":"amount","type":"long"}]}`})
	c := newCluster(t, "orders")
	c.write("orders", "tax", &kgo.Record{Key: []byte("k"), Value: []byte("\x00\x00\x00\x00\x07\x0csecret\x0a")})
	return c, r, serve.Config{Registry: payload.Registry{URL: r.URL()}, OpenRegistry: registry.Open}
}

func TestServer_DecodesByTheRegistry(t *testing.T) {
	t.Parallel()
	c, _, cfg := registered(t)
	cl, _ := c.serve(cfg)
	opens(t, cl, "orders.dlq", 1)
	l, err := cl.Letter(t.Context(), "orders.dlq", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := api.Decoded{JSON: `{"card":"secret","amount":5}`, Size: 28, Kind: "avro", Type: "Order", Schema: 7}
	if v := l.Content.Value; v.Decoded == nil || *v.Decoded != want || v.Size != 13 || l.Content.Key.Decoded != nil {
		t.Errorf("the content is %+v, %+v", l.Content, v.Decoded)
	}
	for where, n := range map[string]int{"value.amount == 5": 1, "value.amount > 5": 0} {
		page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{Where: where}, "", 10)
		if err != nil || len(page.Letters) != n || page.Problem != "" {
			t.Errorf("%s: %+v, %v", where, page, err)
		}
	}
}

// What redaction hides of the JSON is hidden of the bytes, too, and cannot be asked for. Where
// nothing can be decoded, a path hides all.
func TestServer_RedactsWhatTheRegistryDecodes(t *testing.T) {
	t.Parallel()
	c, r, cfg := registered(t)
	cfg.Redact = serve.Redact{Paths: []string{"card"}, Patterns: []string{"4111"}}
	cl, _ := c.serve(cfg)
	opens(t, cl, "orders.dlq", 1)
	l, err := cl.Letter(t.Context(), "orders.dlq", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v := l.Content.Value; !l.Redacted || v.Decoded.JSON != `{"card":"[redacted]","amount":5}` || *v.Text != "[redacted]" {
		t.Errorf("the value is %+v, %+v", v, v.Decoded)
	}
	page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{Where: `value.card == "secret" or text contains "secret"`}, "", 10)
	if err != nil || len(page.Letters) != 0 {
		t.Errorf("what is hidden was found: %+v, %v", page, err)
	}
	r.Close()
	cl, _ = c.serve(cfg)
	opens(t, cl, "orders.dlq", 1)
	if l, err = cl.Letter(t.Context(), "orders.dlq", 1, 0); err != nil {
		t.Fatal(err)
	}
	if v := l.Content.Value; !l.Redacted || v.Decoded != nil || *v.Text != "[redacted] 13 bytes that cannot be read by their schema" || !strings.HasPrefix(v.Problem, "schema 7: the registry can't be reached: ") {
		t.Errorf("the value is %q, %+v", *v.Text, v)
	}
}

// The console shows what a value says, takes an edit of it, and sends it by the same schema.
func TestServer_EditsWhatTheRegistryDecodes(t *testing.T) {
	t.Parallel()
	c, r, cfg := registered(t)
	s, _ := c.run(cfg)
	opens(t, c.clientOf(s, ""), "orders.dlq", 1)
	p := &person{t: t, s: s}
	p.opens("/topics/orders.dlq/letters/1/0", "Decoded as avro Order, schema 7.", `"amount": 5`)
	p.opens("/topics/orders.dlq/letters/1/0?value=hex", "00 00 00 00 07 0c 73 65")
	redrive := func(text string) string {
		_, page := p.do(http.MethodPost, "/topics/orders.dlq/letters/1/0/redrive", url.Values{"do": {"plan"}, "text": {text}, "to": {"orders"}})
		return page
	}
	for text, want := range map[string]string{
		"":                             "it is no JSON",
		`{"card":"secret","amount":5}`: `Or type the value {"card":"secret","amount":5} as it is now`,
		`{"card":"secret","amount":6}`: `removed: - "amount": 5 added: + "amount": 6`,
		`{"card":"secret"}`:            "the field amount of Order is missing",
	} {
		if page := redrive(text); !strings.Contains(page, want) {
			t.Errorf("%s gives no %s: %s", text, want, page)
		}
	}
	_, page := p.do(http.MethodPost, "/topics/orders.dlq/letters/1/0/redrive", url.Values{"do": {"plan"}, "patch": {`{"amount":6}`}, "to": {"orders"}})
	if !strings.Contains(page, `removed: - "amount": 5 added: + "amount": 6`) {
		t.Errorf("a patch is not shown: %s", page)
	}
	at := api.RunRequest{Filter: api.Filter{Offset: []string{"1:0"}}, RunOptions: api.RunOptions{Target: api.Target{Topic: "orders", Wait: true}}}
	at.Edit.Value = &api.NewBytes{Text: `{"card":7,"amount":6}`}
	if _, err := c.clientOf(s, "").Plan(t.Context(), "orders.dlq", at); err == nil || !strings.Contains(err.Error(), "card: 7 is not text") {
		t.Errorf("a plan of an edit that does not fit: %v", err)
	}
	r.Close()
	other, _ := c.run(cfg)
	opens(t, c.clientOf(other, ""), "orders.dlq", 1)
	p = &person{t: t, s: other}
	p.opens("/topics/orders.dlq/letters/1/0", "Not decoded: schema 7: the registry can't be reached")
}

func TestNew_NeedsWhatOpensARegistry(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]serve.Config{
		"registry: Config.OpenRegistry is not set":              {Registry: payload.Registry{URL: "http://r"}},
		"registry: the URL must not have a user":                {Registry: payload.Registry{URL: "http://u@r"}, OpenRegistry: registry.Open},
		"registry: open /none/token: no such file or directory": {Registry: payload.Registry{URL: "http://r", TokenFile: "/none/token"}, OpenRegistry: registry.Open},
	} {
		if _, err := serve.New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Whom an incident hurts is counted by what values say.
func TestServer_CountsByWhatTheRegistryDecodes(t *testing.T) {
	t.Parallel()
	c, _, cfg := registered(t)
	cl, _ := c.serve(cfg)
	opens(t, cl, "orders.dlq", 1)
	got, err := cl.Values(t.Context(), "orders.dlq", "value.amount", api.Filter{})
	if err != nil || len(got.Top) != 1 || got.Top[0].Value != "5" {
		t.Errorf("by amount: %+v, %v", got, err)
	}
}

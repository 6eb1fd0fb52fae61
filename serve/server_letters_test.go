package serve_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// Filters that the index cannot decide give each letter once, over all pages.
func TestServer_FiltersByContentPageByPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{})
	for i := range 300 {
		r := &kgo.Record{Key: fmt.Append(nil, "k", i%7), Value: fmt.Appendf(nil, `{"n":%d}`, i)}
		if i%10 == 0 {
			r.Headers = []kgo.RecordHeader{{Key: "region", Value: []byte("eu")}}
		}
		c.write("orders", "decode", r)
	}
	c.write("orders", "decode", &kgo.Record{Value: []byte("no JSON")})
	opens(t, cl, "orders.dlq", 301)
	for name, test := range map[string]struct {
		filter api.Filter
		want   int
	}{
		"where":    {api.Filter{Where: "value.n >= 250"}, 50},
		"key":      {api.Filter{Key: []string{"k3"}}, 43},
		"header":   {api.Filter{Header: []string{"region=eu"}}, 30},
		"name":     {api.Filter{Header: []string{"region"}}, 30},
		"all":      {api.Filter{Header: []string{"region=eu"}, Where: "value.n < 100", Class: []string{"dec*"}}, 10},
		"attempts": {api.Filter{Attempts: "-20"}, 20},
		"offset":   {api.Filter{Offset: []string{"0:10-19"}}, 10},
		"part":     {api.Filter{Partition: []int32{1}}, 101},
		"none":     {api.Filter{Where: "value.n < 0"}, 0},
	} {
		seen, cursor := map[[2]int64]bool{}, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			page, err := cl.Letters(t.Context(), "orders.dlq", test.filter, cursor, 8)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, l := range page.Letters {
				if at := [2]int64{int64(l.Partition), l.Offset}; seen[at] {
					t.Errorf("%s: page %d has %v again", name, pages, at)
				} else {
					seen[at] = true
				}
			}
			if cursor = page.Next; len(page.Letters) > 8 || pages > 100 {
				t.Fatalf("%s: page %d has %d letters", name, pages, len(page.Letters))
			}
		}
		if len(seen) != test.want {
			t.Errorf("%s: %d letters, want %d", name, len(seen), test.want)
		}
	}
	for name, f := range map[string]api.Filter{
		"where": {Where: "value.n >"}, "class": {Class: []string{"a b"}}, "state": {State: []string{"gone"}}, "offset": {Offset: []string{"x"}},
		"attempts": {Attempts: "many"}, "partition": {Partition: []int32{9}},
	} {
		if _, err := cl.Letters(t.Context(), "orders.dlq", f, "", 0); !client.IsProblem(err, api.BadFilter) {
			t.Errorf("a broken %s: %v", name, err)
		}
	}
}

// What the configuration hides cannot be asked for.
func TestServer_FiltersDoNotSeeWhatIsHidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{Redact: serve.Redact{Paths: []string{"card"}}})
	c.write("orders", "decode", &kgo.Record{Value: []byte(`{"card":"4111","n":1}`)})
	opens(t, cl, "orders.dlq", 1)
	for where, want := range map[string]int{`value.card == "4111"`: 0, `text contains "4111"`: 0, "value.n == 1": 1} {
		page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{Where: where}, "", 0)
		if err != nil || len(page.Letters) != want {
			t.Errorf("%s: %+v, %v", where, page, err)
		}
	}
	if _, err := cl.Export(t.Context(), "orders.dlq", api.Filter{}, true); !client.IsProblem(err, api.Redacted) {
		t.Errorf("an export: %v", err)
	}
}

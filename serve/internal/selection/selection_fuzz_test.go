package selection

import (
	"encoding/json"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
)

// A filter of the API comes from any sender. It is refused, or it can be used.
func FuzzSelection_RefusesOrSelects(f *testing.F) {
	for _, text := range []string{
		"{}", `{"class":["http.*"],"state":["open"],"partition":[0],"offset":["0:1-5"],"attempts":"3-","where":"value.a > 1","header":["a=b"],"key":["k"]}`,
		`{"offset":["9:1"]}`, `{"attempts":"-"}`, `{"where":"("}`, `{"state":["x"]}`, `{"since":"2026-11-23T00:00:00Z","until":"2026-11-22T00:00:00Z"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var is api.Filter
		if json.Unmarshal([]byte(text), &is) != nil {
			t.Skip()
		}
		sel, err := Compile(&is, 3, View{})
		switch {
		case err != nil && sel != nil:
			t.Errorf("%s: %v, %v", text, sel, err)
		case err == nil:
			for _, r := range sel.Filter.Ranges {
				if r.Partition < 0 || r.Partition > 2 {
					t.Errorf("%s selects in partition %d", text, r.Partition)
				}
			}
		}
	})
}

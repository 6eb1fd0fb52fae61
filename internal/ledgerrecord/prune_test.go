package ledgerrecord

import (
	"strings"
	"testing"
	"time"
)

// A record of a newer siding, or a broken one, is named, and hides no other.
func TestPrunes_NameWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	good := Prune{ID: "2", At: time.UnixMilli(5).UTC(), Until: map[int32]int64{0: 1}, Letters: 1}
	r, err := good.Record("one.dlq.ledger")
	if err != nil {
		t.Fatal(err)
	}
	all := Prunes{}
	for _, c := range []struct{ key, value, err string }{
		{"run/prune/1", `{"v":2}`, "it has version 2, and this siding reads version 1"},
		{string(r.Key), string(r.Value), ""},
		{"run/prune/3", `{`, "unexpected end of JSON input"},
		{"run/prune/4", `{"v":1,"topicId":"x"}`, `its topic id is "x"`},
		{"run/prune/5", `{}`, "it names no version"},
		{"run/5", `{}`, ""},
	} {
		changed, err := all.Add(strings.TrimPrefix(c.key, RunKey), []byte(c.value))
		if changed != (c.key == string(r.Key)) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s %s: changed %v, %v", c.key, c.value, changed, err)
		}
	}
	if got := all.Sorted(); len(got) != 1 || got[0].ID != "2" || got[0].Letters != 1 {
		t.Errorf("records %+v", got)
	}
	if changed, err := all.Add("prune/2", nil); !changed || err != nil || len(all) > 0 {
		t.Errorf("it is not withdrawn: %+v, %v", all, err)
	}
}

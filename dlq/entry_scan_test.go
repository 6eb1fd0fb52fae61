package dlq

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is scanned means the same to encoding/json; and what Record writes is scanned, or it would be of no use.
func FuzzAScannedEntryIsWhatJSONSays(f *testing.F) {
	for _, e := range append(entries(), laterEntries()...) {
		f.Add(e.append(nil))
	}
	for _, s := range []string{
		`{"v":1,"state":"failed","at":"x"}`, `{"v":1,"state":"failed","at":"x",}`, `{"v":1,"state":"failed"}}`, `{"v":1,"state":"fa\u0069led"}`,
		`{"v":1,"at":"x","state":"failed"}`, `{"v":1,"state":"a","state":"b"}`, `{"v":1,"state":"`, `{"v":1,"state":"a"`, `{"v":1,}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, ok := scanEntry(string(value))
		if !ok {
			return
		}
		var want entryJSON
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatalf("%s is scanned, but JSON says %v", value, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-JSON +scanned):\n%s", value, d)
		}
	})
}

func TestWhatARunWritesIsScanned(t *testing.T) {
	t.Parallel()
	for _, e := range append(entries(), laterEntries()...) {
		value := e.append(nil)
		plainly := len(e.Edited) == 0 && plain(e.By) && plain(e.Why) && plain(e.Class)
		if _, ok := scanEntry(string(value)); ok != plainly {
			t.Errorf("%s: scanned %v, want %v", value, ok, plainly)
		}
	}
}

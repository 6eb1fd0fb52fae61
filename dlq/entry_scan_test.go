package dlq

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scannedJSON is an entry for encoding/json. encoding/json ignores the case of names; the scanner
// does not.
type scannedJSON struct {
	V       int      `json:"v"`
	Epochs  int      `json:"epochs"`
	TopicID string   `json:"topicId"`
	State   State    `json:"state"`
	Run     string   `json:"run"`
	At      string   `json:"at"`
	Since   string   `json:"since"`
	By      string   `json:"by"`
	Why     string   `json:"why"`
	Target  string   `json:"target"`
	Class   string   `json:"class"`
	Edited  []string `json:"edited"`
}

// The scanner and encoding/json read the same entries, and refuse the same texts.
func FuzzEntry_ScanAgreesWithJSON(f *testing.F) {
	for _, e := range append(entries(), laterEntries()...) {
		f.Add(e.append(nil))
	}
	for _, s := range []string{
		`{"v":1,"state":"failed","at":"x"}`, `{"v":1,"state":"failed","at":"x",}`, `{"v":1,"state":"failed"}}`, `{"v":1,"state":"fa\u0069led"}`,
		`{"v":1,"at":"x","state":"failed"}`, `{"v":1,"state":"a","state":"b"}`, `{"v":1,"state":"`, `{"v":1,"state":"a"`, `{"v":1,}`,
		` { "v" : 12 , "state" : null , "mood" : {"a":[1,"}"]} , "edited" : ["x",null] } `, `{"v":"1","state":{},"run":"r"}`, `{}`, `null`, `[]`, ``,
		`{"v":1e9,"at":7}`, `{"v":1,"epochs":-1}`, `{"v":1,"epochs":0123}`, `{"v":1,"epochs":4294967296}`, `{"v":1,"epochs":120}`, `{"v":01}`, `{null:1}`, `{"st\u0061te":"a"}`, "{\"by\":\"\xff\",\"why\":\"\x01\"}", `{"v":1} x`, `{"mood":nul}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var (
			names map[string]json.RawMessage
			want  scannedJSON
		)
		_ = json.Unmarshal(value, &names)
		for name := range names {
			for _, known := range []string{"v", "epochs", "topicId", "state", "run", "at", "since", "by", "why", "target", "class", "edited"} {
				if name != known && strings.EqualFold(name, known) {
					t.Skip("no siding wrote the name of a field like this")
				}
			}
		}
		wrong := json.Unmarshal(value, &want)
		got, err := scanEntry(string(value))
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%s is scanned with error %v, and JSON says %v", value, err, wrong)
		}
		if d := cmp.Diff(entryJSON(want), got); d != "" {
			t.Errorf("%s (-JSON +scanned):\n%s", value, d)
		}
	})
}

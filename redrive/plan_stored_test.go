package redrive

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/offsetset"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// goldenJSON compares a value's JSON with a file that is never edited.
func goldenJSON(t *testing.T, file string, value any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) && *update {
		want, err = text, os.WriteFile(file, text, 0o600)
	}
	if err != nil || !bytes.Equal(text, want) {
		t.Errorf("%s: %v: got\n%s", file, err, text)
	}
	return text
}

// madePlan is a plan with all its fields.
func madePlan() *Plan {
	at := time.Date(2026, 11, 21, 3, 0, 0, 250e6, time.UTC)
	p := &Plan{
		Selection: Selection{
			Topic: "orders.dlq", Target: Target{Topic: "orders", Wait: true}, MaxRedrives: 5, MaxAttempts: 2,
			Edit: Edit{Set: []kgo.RecordHeader{{Key: "region", Value: []byte("EU")}}, Unset: []string{"trace"}, Patch: []byte(`{"a":null}`)},
		},
		ID: "20261121-030000-7f3a01", Created: at, Letters: 4,
		ByClass: map[string]int64{"orders.SKUError": 4}, ByPartition: map[int32]int64{0: 1, 3: 3}, ByGroup: map[string]int64{"billing": 3, "": 1},
		Targets: map[string]int64{"orders": 4}, SeenBy: []string{"audit", "billing"}, Watched: []string{"orders.retry.5s"},
		Skipped: map[string]int64{SkippedTooOften: 2}, Warnings: []string{"2 letters stay: they reached the limit of redrives"},
		topicID: [16]byte{0xfb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}, stored: &storedNames{"orders", "orders.dlq.ledger"},
		chosen: letters.Set{}, by: map[destination]int64{{"billing", 0}: 1, {"billing", 3}: 2, {"", 3}: 1}, elsewhere: map[string]bool{"orders": true},
		duplicates: []duplicate{{letters.At(3, 9), 7}}, oldest: at.Add(-time.Hour), unknown: 1, unread: "the entries of 1 of the letters can't be read",
		unfit: errors.New("letter orders.dlq/3/8: patch: no object"),
	}
	for _, at := range []letters.Place{letters.At(0, 1<<40), letters.At(3, 0), letters.At(3, 1), letters.At(3, 7)} {
		p.chosen.Add(at)
	}
	return p
}

// A plan of an earlier version can be run by a later one. A version that writes plans which this
// one would misread takes another number, and reads both.
func TestPlan_IsStoredAsInItsGoldenFile(t *testing.T) {
	t.Parallel()
	p := madePlan()
	text := goldenJSON(t, "testdata/plan-v1.json", p)
	var again Plan
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, &again) {
		t.Errorf("it is read as %+v, want %+v", again, *p)
	}
	// A field of the selection that was added and not stored was lost on the way to the run.
	for i, s := 0, reflect.ValueOf(again.Selection); i < s.NumField(); i++ {
		// the filter has chosen the letters
		if name := s.Type().Field(i).Name; s.Field(i).IsZero() && name != "Filter" {
			t.Errorf("Selection.%s is not stored, or the plan of this test has none", name)
		}
	}
	var compact bytes.Buffer // white space does not matter
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(compact.Bytes(), &again); err != nil {
		t.Error(err)
	}
}

func TestPlan_StoredRefusesWhatIsNotAsItWasWritten(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(madePlan())
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	unsummed, _, _ := strings.Cut(whole, `,"checksum"`)
	for name, c := range map[string]struct{ text, want string }{
		"cut":           {whole[:len(whole)-100], "unexpected end of JSON input"},
		"empty":         {"", "unexpected end of JSON input"},
		"no plan":       {`{"topic":"orders.dlq"}`, "it names no version, so it is no stored plan"},
		"a list":        {`[1]`, "cannot unmarshal array"},
		"newer":         {strings.Replace(whole, `"v":1,`, `"v":2,"more":1,`, 1), "it has version 2, and this siding reads version 1: use a newer siding"},
		"other letters": {strings.Replace(whole, `"letter":7`, `"letter":6`, 1), "it is not as it was stored"},
		"another topic": {strings.Replace(whole, `"topic":"orders.dlq"`, `"topic":"bills.dlq"`, 1), "it is not as it was stored"},
		"another count": {strings.Replace(whole, `"letters":4`, `"letters":5`, 1), "it is not as it was stored"},
		"one field":     {strings.Replace(whole, `"source"`, `"sources":1,"source"`, 1), "it is not as it was stored"},
		"no checksum":   {unsummed + "}", "it is not as it was stored"},
	} {
		before := Plan{ID: "before"}
		err := json.Unmarshal([]byte(c.text), &before)
		if err == nil || !strings.Contains(err.Error(), c.want) || before.ID != "before" {
			t.Errorf("%s: %v, want %q; the plan is %q", name, err, c.want, before.ID)
		}
	}
	if _, err := json.Marshal(&Plan{}); err == nil {
		t.Error("an empty plan can be stored")
	}
}

// Whatever a file has, it is read or refused, and what is read is written as the same plan.
func FuzzPlan_RoundTrips(f *testing.F) {
	text, err := json.Marshal(madePlan())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"v":1,"chosen":[{"v":1,"partition":0,"offsets":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePlan(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if p2, err := parsePlan(again); err != nil || !reflect.DeepEqual(p, p2) {
			t.Errorf("%+v is read as %+v, %v", p, p2, err)
		}
	})
}

func TestOutcome_IsAsInItsGoldenFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 250e6, time.UTC)
	o := Outcome{
		Topic: "orders.dlq", ID: "20261121-030000-7f3a01", State: Watching, Waiting: "w", Cause: "c", By: "ada", Why: "OPS-1", Owner: "ada on host, process 7",
		Heartbeat: at.Add(time.Second), SilentAfter: lively, Claim: "0011", Started: at, Stopped: at.Add(time.Minute), Ended: at.Add(time.Hour), RampBegan: at.Add(time.Minute), WindowEnds: at.Add(2 * time.Hour),
		Pace: Pace{Rate: 50, Burst: 5, Canary: 1, Tolerate: 2, TolerateShare: 0.1, Ramp: 30 * time.Second, Window: time.Minute, MaxLag: 1000},
		Counts: Counts{
			Selected: 10, Sent: 8, Succeeded: 1, Failed: 2, FailedByClass: map[string]int64{"orders.SKUError": 2}, Discarded: 1, Retrying: 1,
			Pending: 2, Unknown: 1, Unfollowed: 1, Skipped: map[string]int64{SkippedExpired: 2},
		},
	}
	var again Outcome
	if err := json.Unmarshal(goldenJSON(t, "testdata/outcome-v1.json", o), &again); err != nil || !reflect.DeepEqual(o, again) {
		t.Errorf("it is read as %+v, %v", again, err)
	}
}

// piecesIn splits large selections; a stored plan has all of them.
func TestPlan_StoredHasManyPieces(t *testing.T) {
	t.Parallel()
	p := madePlan()
	p.chosen = letters.Set{7: &offsetset.Set{}}
	for i := range int64(100_000) {
		p.chosen.Add(letters.At(7, i*3))
	}
	p.Letters = p.chosen.Len()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parsePlan(text)
	if err != nil || !reflect.DeepEqual(p.chosen, again.chosen) || len(piecesIn(p.chosen)) < 2 {
		t.Errorf("%d letters are read, %v, in %d pieces", again.Letters, err, len(piecesIn(p.chosen)))
	}
}

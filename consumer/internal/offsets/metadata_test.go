package offsets

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/internal/commitmark"
)

var update = flag.Bool("update", false, "write the golden file anew")

// drawSpans draws spans that ascend and do not touch, the first at the floor or above.
func drawSpans(t *rapid.T, floor int64) (spans []Span) {
	at := floor - 1
	for i := range rapid.IntRange(0, 60).Draw(t, "spans") {
		gap := rapid.SampledFrom([]int64{2, 2, 2, 3, 9, 70, 5000, 1 << 33}).Draw(t, "gap")
		if i == 0 {
			gap = rapid.Int64Range(1, 70).Draw(t, "first")
		}
		first := at + gap
		at = first + rapid.SampledFrom([]int64{0, 0, 1, 7, 64, 3000, 1 << 32}).Draw(t, "length")
		spans = append(spans, Span{first, at})
	}
	return spans
}

func TestMetadata_KeepsTheRecordsNearestToTheFloor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.Int64Range(0, 1<<40).Draw(t, "floor")
		m := Metadata{Finished: drawSpans(t, floor)}
		limit := rapid.SampledFrom([]int{0, 6, 12, 13, 14, 20, 100, MetadataLimit, 1 << 16}).Draw(t, "limit")
		text := m.Encode(floor, limit)
		if len(text) > max(limit, len(commitmark.Mark)) {
			t.Fatalf("%d characters, want %d at most", len(text), limit)
		}
		if !commitmark.Marked(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("not marked, or not plain ASCII: %q", text)
		}
		got, ok := ParseMetadata(text, floor)
		if !ok {
			t.Fatalf("cannot be read: %q", text)
		}
		// What is there is the beginning of what was given; only the last span may be cut.
		for i, s := range got.Finished {
			if s.First != m.Finished[i].First || s.Last > m.Finished[i].Last || i < len(got.Finished)-1 && s.Last != m.Finished[i].Last {
				t.Fatalf("span %d is %v, was %v", i, s, m.Finished[i])
			}
		}
		if limit == 1<<16 && !slices.Equal(got.Finished, m.Finished) {
			t.Fatalf("got %v, want %v", got.Finished, m.Finished)
		}
	})
}

// 4,096 characters hold 24,000 records of which every other one is finished.
func TestMetadata_HoldsThousandsOfRecords(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]struct {
		every, length int64
		want          int
	}{
		"every other record":       {2, 1, 12_000},
		"one in ten":               {10, 1, 2_400},
		"all but one in a million": {1_000_000, 999_999, 500_000_000},
	} {
		var spans []Span
		for i := range int64(5_000) {
			spans = append(spans, Span{1 + i*each.every, i*each.every + each.length})
		}
		for i := range int64(20_000) {
			if at := 1 + (5_000+i)*each.every; each.every == 2 {
				spans = append(spans, Span{at, at})
			}
		}
		m := Metadata{Finished: spans}
		got, _ := ParseMetadata(m.Encode(0, MetadataLimit), 0)
		n := 0
		for _, s := range got.Finished {
			n += int(s.Last - s.First + 1)
		}
		if n < each.want {
			t.Errorf("%s: %d records are kept, want %d at least", name, n, each.want)
		}
	}
}

// goldenMetadata are texts of which each must stay readable.
var goldenMetadata = []struct {
	name string
	m    Metadata
}{
	{"nothing finished", Metadata{}},
	{"one", Metadata{Finished: []Span{{101, 101}}}},
	{"a bitmap", Metadata{Finished: []Span{{101, 101}, {103, 103}, {105, 108}, {110, 110}, {112, 112}, {114, 114}}}},
	{"run lengths", Metadata{Finished: []Span{{103, 250}, {260, 900}}}},
	{"from the floor on", Metadata{Finished: []Span{{100, 200}}}},
	{"running", Metadata{Evidence: Evidence{Process: 987654321, Until: 164}}},
	{"running again", Metadata{Finished: []Span{{103, 103}}, Evidence: Evidence{Process: 1, Until: 180, Deaths: 1, Suspect: 164}}},
	{"in groups", Metadata{Evidence: Evidence{Process: 1, Deaths: 2, Suspect: 164, Singly: []Span{{100, 104}, {110, 111}}}}},
	{"alone", Metadata{Evidence: Evidence{Process: 1, Deaths: 2, Suspect: 164, Singly: []Span{{100, 104}}, Alone: &Alone{103, false}}}},
	{"condemned", Metadata{Evidence: Evidence{Process: 1, Deaths: 2, Suspect: 164, Condemned: []Alone{{103, true}, {105, false}}}}},
	{"decoded alone", Metadata{Evidence: Evidence{Process: 1, Deaths: 2, Suspect: 164, Alone: &Alone{100, true}}}},
	{"held", Metadata{Evidence: Evidence{Process: 1}, Guard: commitmark.Guard{State: commitmark.Held, Since: time.Unix(1_800_000_000, 0), Class: "billing.down"}}},
	{"held keys", Metadata{Finished: []Span{{103, 103}}, Heads: []Head{{100, 1, 1_800_000_005, 1_799_999_999}, {102, 2, 1_800_000_300, 1_800_000_000}, {700, 3, 1_800_000_000, 1_799_999_000}}}},
	{"strained", Metadata{Finished: []Span{{103, 103}}, Guard: commitmark.Guard{State: commitmark.Strained, Since: time.Unix(1_800_000_000, 0)}}},
	{"a release", Metadata{Lane: commitmark.Lane{Release: "2.3.1"}}},
	{"stopped", Metadata{Finished: []Span{{103, 103}}, Lane: commitmark.Lane{State: commitmark.Stopped, Since: time.Unix(1_800_000_000, 0), Release: "2.3.1"}}},
	{"behind a transaction", Metadata{Lane: commitmark.Lane{State: commitmark.Denied, Since: time.Unix(1_800_000_000, 0), OpenSince: time.Unix(1_800_000_100, 0)}}},
}

func TestMetadata_GoldenFile(t *testing.T) {
	t.Parallel()
	const file = "testdata/metadata_1.golden"
	var lines []string
	for _, g := range goldenMetadata {
		lines = append(lines, fmt.Sprintf("%s: %s", g.name, g.m.Encode(100, MetadataLimit)))
	}
	now := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != now {
		t.Errorf("the format has changed: raise its version. Stored:\n%s\nnow:\n%s", stored, now)
	}
	// as it was written at first
	before, err := os.ReadFile("testdata/metadata_1_without_floor.golden")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]Metadata{}
	for _, g := range goldenMetadata {
		written[g.name] = g.m
	}
	for _, line := range append(strings.Split(strings.TrimSpace(string(stored)), "\n"), strings.Split(strings.TrimSpace(string(before)), "\n")...) {
		name, text, _ := strings.Cut(line, ": ")
		if got, ok := ParseMetadata(text, 100); !ok || !reflect.DeepEqual(got, written[name]) {
			t.Errorf("%q is read as %v, %v", line, got, ok)
		}
	}
}

// What is known about a record that kills survives brokers that store little with an offset: the
// records that run one by one may become more, and never fewer.
func TestMetadata_EvidenceFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.Int64Range(0, 1<<40).Draw(t, "floor")
		spans := drawSpans(t, floor)
		for range rapid.IntRange(0, 2000).Draw(t, "more") {
			last := floor
			if n := len(spans); n > 0 {
				last = spans[n-1].Last
			}
			spans = append(spans, Span{last + 2, last + 2})
		}
		suspect := floor + 64
		if n := len(spans); n > 0 {
			suspect = spans[n-1].Last + 1
		}
		m := Metadata{Finished: spans, Evidence: Evidence{Process: 1<<40 - 1, Deaths: 2, Suspect: suspect, Singly: spans, Alone: &Alone{floor + 1, true}}}
		if rapid.Bool().Draw(t, "held") {
			m.Guard = commitmark.Guard{State: commitmark.Held, Since: time.Unix(1<<37-1, 0), Class: strings.Repeat("c", 24)}
			m.Lane = commitmark.Lane{State: commitmark.Refused, Since: time.Unix(1<<37-1, 0), OpenSince: time.Unix(1<<37-1, 0), Release: strings.Repeat("v", 24)}
		}
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, suspect-floor-1), 0, 100).Draw(t, "condemned") {
			m.Condemned = append(m.Condemned, Alone{floor + n, n%2 == 0})
		}
		limit := rapid.SampledFrom([]int{100, 128, 256, 1024, MetadataLimit}).Draw(t, "limit")
		text := m.Encode(floor, limit)
		if len(text) > limit {
			t.Fatalf("%d characters, want %d at most", len(text), limit)
		}
		got, ok := ParseMetadata(text, floor)
		if !ok || got.Process != m.Process || got.Deaths != 2 || got.Suspect != suspect || got.Alone == nil || *got.Alone != *m.Alone {
			t.Fatalf("%q is read as %v, %v; was %v", text, got.Evidence, ok, m.Evidence)
		}
		if limit == MetadataLimit && (got.Guard != m.Guard || got.Lane != m.Lane) {
			t.Fatalf("%q is read as %v, %v, was %v, %v", text, got.Guard, got.Lane, m.Guard, m.Lane)
		}
		known := len(got.Condemned)
		if known > len(m.Condemned) || !slices.Equal(got.Condemned, m.Condemned[:known]) || limit == MetadataLimit && known < len(m.Condemned) {
			t.Fatalf("%q condemns %v; was %v", text, got.Condemned, m.Condemned)
		}
		for _, a := range m.Condemned[known:] {
			spans = append(spans, Span{a.Offset, a.Offset})
		}
		for _, s := range spans {
			if !slices.ContainsFunc(got.Singly, func(g Span) bool { return g.First <= s.First && s.Last <= g.Last }) {
				t.Fatalf("%q: %v is missing", text, s)
			}
		}
	})
}

// Two records far apart are named as one span where two do not fit, and never left out.
func TestMetadata_FarEvidenceFits(t *testing.T) {
	t.Parallel()
	far := []Span{{1_000_000, 1_000_000}, {1_200_000, 1_200_000}}
	m := Metadata{Evidence: Evidence{Process: 1<<40 - 1, Deaths: 2, Suspect: 1_200_001, Singly: far}}
	whole := m.Encode(0, MetadataLimit)
	m.Singly = []Span{{1_000_000, 1_200_000}}
	least := len(m.Encode(0, MetadataLimit))
	m.Singly = far
	for limit := least; limit <= len(whole); limit++ {
		text := m.Encode(0, limit)
		got, ok := ParseMetadata(text, 0)
		if !ok || len(text) > limit || got.Deaths != 2 || len(got.Singly) == 0 || got.Singly[0].First > 1_000_000 || got.Singly[len(got.Singly)-1].Last < 1_200_000 {
			t.Errorf("of %d characters: %q", limit, text)
		}
	}
}

func TestParseMetadata_IgnoresWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for text, known := range map[string]bool{
		"": false, "kgo-1234": false, "siding2": false, "siding 2 b=AQ": false, "siding ": false,
		"siding 1 b=!": false, "siding 1 b=AQ r=AQ": false, "siding 1 r=AA": false, "siding 1 r=AQEAAQ": false,
		"siding 1 r=//////////////////8B": false, "siding 1 u=": false, "siding 1 u=-1": false, "siding 1 n=0": false, "siding 1 x=d": false,
		"siding 1 g=AA": false, "siding 1 s=9223372036854775807": false, "siding 1 p=!": false,
		"siding 1 f=8 b=Ag": false, "siding 1 b=Ag f=6": false, "siding 1 f=!": false, "siding 1 f=": false, "siding 1 f=7 b=Ag": true,
		"siding": true, "siding 1": true, "siding 1 z=later b=Ag": true, "siding 1 k=AQ l= t=! v=!": true,
	} {
		m, ok := ParseMetadata(text, 7)
		if ok != known || !ok && m.Finished != nil {
			t.Errorf("%q: got %v, %v", text, m, ok)
		}
		if text == "siding 1 z=later b=Ag" && !slices.Equal(m.Finished, []Span{{8, 8}}) {
			t.Errorf("%q: got %v", text, m)
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	for _, g := range goldenMetadata {
		f.Add(g.m.Encode(100, MetadataLimit), int64(100))
	}
	f.Add("siding 1 r=AAEBAQ", int64(1<<61))
	f.Add("siding 1 p=1z141z3 u=4 n=3 s=9 g=AgIBAg x=3d c=1 c=5d b=Gg", int64(7))
	f.Fuzz(func(t *testing.T, text string, floor int64) {
		if floor < 0 || floor > 1<<61 {
			return
		}
		m, ok := ParseMetadata(text, floor)
		if !ok {
			return
		}
		at := floor - 1
		for i, s := range m.Finished {
			if s.First <= at || s.Last < s.First || i > 0 && s.First == at+1 {
				t.Fatalf("%q: span %d is %v, after %d", text, i, s, at)
			}
			at = s.Last
		}
		once := m.Encode(floor, 1<<20)
		again, ok := ParseMetadata(once, floor)
		if !ok || !slices.Equal(again.Finished, m.Finished) || again.Deaths > 0 && again.Suspect <= floor || again.Encode(floor, 1<<20) != once {
			t.Fatalf("%q: %v is read back as %v", text, m, again)
		}
	})
}

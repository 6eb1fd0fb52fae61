package selection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

func TestFlags_ChooseLetters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		want   []int64
		failed int
	}{
		{nil, []int64{0, 1, 2, 3, 4}, 0},
		{[]string{"--class", "decode,http.503"}, []int64{0, 1, 2, 4}, 0},
		{[]string{"--class", "*fs.PathError", "--class", "decode"}, []int64{2, 3, 4}, 0},
		{[]string{"--class", "http.*,*fs.*"}, []int64{0, 1, 3}, 0},
		{[]string{"--fingerprint", "00000000000000aa"}, []int64{0}, 0},
		{[]string{"--reason", "terminal,decode", "--group", "billing"}, []int64{2, 3}, 0},
		{[]string{"--since", "3h"}, []int64{1, 2, 3, 4}, 0},
		{[]string{"--since", "1d", "--until", "2h"}, []int64{0, 1}, 0},
		{[]string{"--since", "2026-11-20T10:00", "--until", "2026-11-20T10:00:00Z"}, []int64{2}, 0},
		{[]string{"--until", "2026-11-20 09:00:00"}, []int64{0}, 0},
		{[]string{"--entered-since", "119m"}, []int64{2, 3, 4}, 0},
		{[]string{"--since", "119m"}, []int64{3, 4}, 0},
		{[]string{"--entered-until", "119m", "--until", "2h"}, []int64{0, 1}, 0},
		{[]string{"--key", "a"}, []int64{0, 4}, 0},
		{[]string{"--key", ""}, []int64{3}, 0},
		{[]string{"--key", "a,b", "--key", "b"}, []int64{1}, 0},
		{[]string{"--partition", "1"}, []int64{4}, 0},
		{[]string{"--offset", "0:1-2"}, []int64{1, 2}, 0},
		{[]string{"--offset", "0:0,0:3-", "--partition", "0,1"}, []int64{0, 3, 4}, 0},
		{[]string{"--offset", "0:-1"}, []int64{0, 1}, 0},
		{[]string{"--header", "region=eu"}, []int64{0, 4}, 0},
		{[]string{"--header", "region="}, []int64{3}, 0},
		{[]string{"--header", "region", "--header", "k=v"}, []int64{0}, 0},
		{[]string{"--header", "region=us", "--header", "region="}, []int64{1, 3, 4}, 0},
		{[]string{"--header", "region=us", "--header", "region"}, []int64{1, 4}, 0},
		{[]string{"--attempts", "0"}, []int64{4}, 0},
		{[]string{"--attempts", "1"}, []int64{1, 2}, 0},
		{[]string{"--attempts", "1-2"}, []int64{1, 2, 3}, 0},
		{[]string{"--attempts", "2-"}, []int64{0, 3}, 0},

		{[]string{"--where", `class startsWith "http." and attempts > 1`}, []int64{0}, 0},
		// As floating point both ids are one.
		{[]string{"--where", `value.id == 9007199254740993`}, []int64{0}, 3},
		{[]string{"--where", `value.tier == "gold"`}, []int64{0}, 3},
		{[]string{"--where", `value?.tier == nil`}, []int64{1}, 3},
		{[]string{"--where", `any(value.items, .sku == "x")`}, []int64{0}, 4},
		{[]string{"--where", `value.tier`}, nil, 4},
		{[]string{"--where", `key == "a"`}, []int64{0, 4}, 0},
		{[]string{"--where", `key == nil`}, []int64{2}, 0},
		{[]string{"--where", `headers["region"] == "eu"`}, []int64{0, 4}, 0},
		{[]string{"--where", `headers.region == nil`}, []int64{2}, 0},
		{[]string{"--where", `text contains "json"`}, []int64{2}, 0},
		{[]string{"--where", `failedAt > date("2026-11-20T09:30:00Z") and partition == 0`}, []int64{3}, 0},
		{[]string{"--where", `redrives > 1 and topic == "orders" and timestamp < failedAt`}, []int64{4}, 0},
		{[]string{"--where", `reason in ["decode", "exhausted"]`, "--group", "billing"}, []int64{0, 2}, 0},
		// the others are not asked about
		{[]string{"--where", `value.id > 0`, "--class", "decode"}, nil, 2},
	} {
		s, err := compile(t, c.args...)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		var got []int64
		for _, l := range letters() {
			if s.Filter.Selects(l) {
				got = append(got, l.Record.Offset)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q chooses %v, want %v", c.args, got, c.want)
		}
		switch {
		case s.Where == nil && c.failed > 0, s.Where != nil && s.Where.Failed != c.failed:
			t.Errorf("%q: failed on %+v, want %d letters", c.args, s.Where, c.failed)
		case c.failed > 0 && !strings.HasPrefix(s.Where.First.Error(), "orders.dlq/"):
			t.Errorf("%q: %v does not name the first letter", c.args, s.Where.First)
		}
		want := ""
		if c.failed > 0 {
			want = fmt.Sprintf("--where failed on %d of the letters, which are not chosen; the first: orders.dlq/", c.failed)
		}
		if got := s.WhereProblem(true); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: it says %q, want %q", c.args, got, want)
		}
	}
}

func TestFlags_ReportEveryProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--class", "a b", "--reason", "bug", "--fingerprint", "xyz", "--attempts", "many", "--since", "soon"}, []string{
			`--class: "a b" is not a class`, `--fingerprint: "xyz" is not 16 digits`, `--reason: "bug" is not a reason: choose panic, malformed,`, `--since: "soon" is neither a duration`, `--attempts: "many" is not a number`,
		}},
		{[]string{"--since", "1h", "--until", "2h"}, []string{"--since 1h is not before --until 2h"}},
		{[]string{"--entered-since", "1h", "--entered-until", "2h"}, []string{"--entered-since 1h is not before --entered-until 2h"}},
		{[]string{"--since", "-1h"}, []string{`--since: "-1h" lies in the future`}},
		{[]string{"--partition", "x,-1", "--offset", "3,0:5-4,0:-"}, []string{
			`--partition: "x" is not`, `--partition: "-1" is not`, `--offset: "3" does not begin with a partition`, `--offset: partition 0: "5-4" ends before it begins`, `--offset: partition 0: "-" is not a number`,
		}},
		{[]string{"--partition", "1", "--offset", "2:3"}, []string{"--offset: partition 2 is not among those of --partition"}},
		{[]string{"--where", `class == "a" and atempts > 1`}, []string{"--where: column 18: unknown name atempts", `| class == "a" and atempts > 1`, "| .................^"}},
		{[]string{"--where", `class ==`}, []string{"--where: column 8: unexpected token EOF", "| class ==", "| .......^"}},
		{[]string{"--where", `attempts + 1`}, []string{"--where: expected bool, but got int"}},
	} {
		_, err := compile(t, c.args...)
		lines := strings.Split(fmt.Sprint(err), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%q: %d problems, want %d:\n%v", c.args, len(lines), len(c.want), err)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("%q: %q does not say %q", c.args, lines[i], w)
			}
		}
	}
}

// Help and completion listed reasons that no consumer writes, and an operator looked for them in
// vain. A letter of a newer consumer can have them, so the filter takes them.
func TestFlags_ListOnlyReasonsThatConsumersWrite(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f := AddFlags(set)
	for _, reason := range []string{"crash-loop", "held"} {
		if strings.Contains(set.FlagUsages(), reason) || slices.Contains(Reasons, reason) {
			t.Errorf("%s is listed", reason)
		}
		if err := set.Set("reason", reason); err != nil {
			t.Error(err)
		}
	}
	if s, err := f.Compile(now); err != nil || len(s.Filter.Reasons) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("east", 3600))

func compile(t *testing.T, args ...string) (*Selection, error) {
	t.Helper()
	set := pflag.NewFlagSet("list", pflag.ContinueOnError)
	f := AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Compile(now)
}

// letters are what the tests choose from, named by their offsets on partition 0; number 4 is on
// partition 1. Each came into the topic two minutes after it failed.
func letters() []*dlq.Letter {
	letter := func(p int32, o int64, ago time.Duration, key, value string, m headers.Meta, h ...kgo.RecordHeader) *dlq.Letter {
		m.FailedAt = now.Add(-ago)
		r := &kgo.Record{Topic: "orders.dlq", Partition: p, Offset: o, Value: []byte(value), Headers: h}
		r.Timestamp = m.FailedAt.Add(2 * time.Minute)
		if key != "-" {
			r.Key = []byte(key)
		}
		return &dlq.Letter{Record: r, Meta: m}
	}
	h := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	return []*dlq.Letter{
		letter(0, 0, 5*time.Hour, "a", `{"id":9007199254740993,"tier":"gold","items":[{"sku":"x"}]}`, headers.Meta{Class: "http.503", Group: "billing", Attempts: 4, Reason: headers.ReasonExhausted, Fingerprint: "00000000000000aa"}, h("region", "eu"), h("k", "v")),
		letter(0, 1, 3*time.Hour, "b", `{"id":9007199254740992,"tier":null}`, headers.Meta{Class: "http.503", Group: "audit", Attempts: 1, Reason: headers.ReasonTerminal}, h("region", "us")),
		letter(0, 2, 2*time.Hour, "-", `no json`, headers.Meta{Class: "decode", Group: "billing", Attempts: 1, Reason: headers.ReasonDecode}),
		letter(0, 3, time.Hour, "", ``, headers.Meta{Class: "*fs.PathError", Group: "billing", Attempts: 2, Reason: headers.ReasonTerminal}, h("region", "")),
		letter(1, 4, 0, "a", `[1]`, headers.Meta{Class: "decode", Attempts: 0, Original: headers.Position{Topic: "orders", Timestamp: now.Add(-time.Minute)}, Redrive: headers.Redrive{Count: 2}}, h("region", "us"), h("region", "eu")),
	}
}

func TestMissing_NamesPartitionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	s, err := compile(t, "--partition", "2,7,3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{3, 7}, s.Missing(3)); diff != "" {
		t.Errorf("missing partitions: %s", diff)
	}
}

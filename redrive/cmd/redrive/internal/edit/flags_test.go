package edit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

func TestFlags_EditTheRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(`{"sku":null,"n":{"x":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const value = `{"z":9007199254740993,"a":1.50,"sku":"old","n":{"y":[1,null]}}`
	const before = "b=1 a=2 b=3 nil"
	for _, c := range []struct {
		args    []string
		stdin   string
		headers string
		value   string
	}{
		{args: []string{"--set-header", "b=x=y"}, headers: "b=x=y a=2 nil", value: value},
		{args: []string{"--set-header", "c=", "--unset-header", "b"}, headers: "a=2 nil c=", value: value},
		{args: []string{"--unset-header", "none"}, headers: before, value: value},
		{args: []string{"--patch", ` {"sku":"new"}`}, headers: before, value: `{"z":9007199254740993,"a":1.50,"sku":"new","n":{"y":[1,null]}}`},
		{args: []string{"--patch", file}, headers: before, value: `{"z":9007199254740993,"a":1.50,"n":{"y":[1,null],"x":1}}`},
		{args: []string{"--patch", "-"}, stdin: `{"n":[]}`, headers: before, value: `{"z":9007199254740993,"a":1.50,"sku":"old","n":[]}`},
		{args: []string{"--value-file", file, "--set-header", "a=3"}, headers: "b=1 a=3 b=3 nil", value: `{"sku":null,"n":{"x":1}}`},
		{args: []string{"--value-file", "-"}, stdin: "\x00raw\n", headers: before, value: "\x00raw\n"},
	} {
		e, err := compile(t, c.stdin, c.args...)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		h, raw := parse(before), []byte(value)
		gotH, gotV, err := e.Apply(h, raw)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		if diff := cmp.Diff(parse(c.headers), gotH); diff != "" {
			t.Errorf("%q: headers: %s", c.args, diff)
		}
		if string(gotV) != c.value {
			t.Errorf("%q: value = %s, want %s", c.args, gotV, c.value)
		}
		if diff := cmp.Diff(parse(before), h); diff != "" || string(raw) != value {
			t.Errorf("%q: what it was given is changed: %s %s", c.args, diff, raw)
		}
		if single := strings.Contains(c.args[0], "value-file"); (e.Value != nil) != single {
			t.Errorf("%q: has a new value = %v, want %v", c.args, e.Value != nil, single)
		}
	}
}

func TestFlags_NoneIsNoEdit(t *testing.T) {
	t.Parallel()
	if e, err := compile(t, ""); !e.IsZero() || err != nil {
		t.Errorf("edit %v, %v; want none", e, err)
	}
}

func TestFlags_ReportEveryProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--set-header", "a", "--set-header", "=x", "--set-header", "dlq-group=g", "--unset-header", "b", "--unset-header", "b", "--patch", "{", "--value-file", "x"}, []string{
			`--set-header: "a" is not name=value`, "--set-header: the header has no name", "--set-header: dlq-group is siding's own", "--unset-header: b is set or unset twice", "--patch and --value-file both",
		}},
		{[]string{"--patch", `{"a":`}, []string{"--patch: the patch is no JSON: unexpected end"}},
		{[]string{"--patch", `{"a":{"b":1,"b":2}}`}, []string{"--patch: the patch has the member /a/b twice"}},
		{[]string{"--patch", `[1]`}, []string{"--patch: open [1]: no such file or directory; JSON given here begins with {"}},
		{[]string{"--patch", "-"}, []string{"--patch: the patch is no JSON"}},
		{[]string{"--value-file", "/none"}, []string{"--value-file: open /none: no such file"}},
	} {
		_, err := compile(t, "", c.args...)
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

func compile(t *testing.T, stdin string, args ...string) (redrive.Edit, error) {
	t.Helper()
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f := AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Compile(strings.NewReader(stdin))
}

func parse(text string) (h []kgo.RecordHeader) {
	for field := range strings.FieldsSeq(text) {
		k, v, ok := strings.Cut(field, "=")
		x := kgo.RecordHeader{Key: k}
		if ok {
			x.Value = []byte(v)
		}
		h = append(h, x)
	}
	return h
}

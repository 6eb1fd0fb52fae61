package costs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = head + "dlq.BenchmarkA\t0.000\t0\nheaders.BenchmarkA\t2.000\t1000\nheaders.BenchmarkB\t0.500\t8\n"

func TestTable_IsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	got, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, got.String()); d != "" {
		t.Error(d)
	}
	for _, broken := range []string{"", "headers.BenchmarkA\t2.000\t1000\n", head + "headers.BenchmarkA\t2.000\n", head + "headers.BenchmarkA\tx\t1\n", head + "headers.BenchmarkA\t1\tx\n"} {
		if _, err := parse(broken); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
	got.replace(table{"headers.BenchmarkC": {1, 16}})
	if d := cmp.Diff(head+"dlq.BenchmarkA\t0.000\t0\nheaders.BenchmarkC\t1.000\t16\n", got.String()); d != "" {
		t.Error(d)
	}
}

func TestTable_SaysWhatIsAboveItsCeiling(t *testing.T) {
	t.Parallel()
	ceilings, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for want, costs := range map[string]table{
		"": {"headers.BenchmarkA": {2.019, 1009}, "headers.BenchmarkB": {0.1, 9}},
		"headers.BenchmarkA costs 2.030 allocations, 1000 bytes": {"headers.BenchmarkA": {2.03, 1000}, "headers.BenchmarkB": {}},
		"headers.BenchmarkA costs 1.000 allocations, 1011 bytes": {"headers.BenchmarkA": {1, 1011}, "headers.BenchmarkB": {}},
		"headers.BenchmarkC has no ceiling":                      {"headers.BenchmarkA": {}, "headers.BenchmarkB": {}, "headers.BenchmarkC": {}},
		"headers.BenchmarkB has a ceiling, and is no benchmark":  {"headers.BenchmarkA": {}},
	} {
		got := strings.Join(ceilings.problems(costs), "\n")
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") || strings.Contains(got, "\n") {
			t.Errorf("%v: %q, want %q", costs, got, want)
		}
	}
}

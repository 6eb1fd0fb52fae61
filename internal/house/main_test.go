package main

import (
	"strings"
	"testing"
)

func TestRun_PrintsTheMeasuresOfACheckout(t *testing.T) {
	t.Parallel()
	var out, problems strings.Builder
	if code := run([]string{"-C", t.TempDir()}, &out, &problems); code != 2 {
		t.Errorf("code %d for a folder without a checkout, want 2", code)
	}
	if code := run([]string{"-C", "../.."}, &out, &problems); code == 2 {
		t.Errorf("this checkout cannot be measured:\n%s", &problems)
	}
	for _, want := range []string{"README.md words", "consumer largest cycle, lines"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed", want)
		}
	}
}

func TestJudge_RefusesAMeasureOverItsCeiling(t *testing.T) {
	t.Parallel()
	got := measures{"a": 2, "b": 3}
	var problems strings.Builder
	if !judge(got, nil, map[string]int{"a": 2}, &problems) || problems.Len() > 0 {
		t.Errorf("refused at its ceiling: %s", &problems)
	}
	if judge(got, map[string][]string{"b": {"here.go"}}, map[string]int{"b": 2}, &problems) || !strings.Contains(problems.String(), "here.go") {
		t.Errorf("not refused with its place: %q", &problems)
	}
	if judge(got, nil, map[string]int{"c": 2}, &problems) {
		t.Error("a ceiling of what is not measured was passed over")
	}
}

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
}

func TestJudge_RefusesAMeasureOverItsCeiling(t *testing.T) {
	t.Parallel()
	got := measures{"a": 2, "b": 3}
	var problems strings.Builder
	if !judge(got, nil, ceilings{"a": 2}, nil, &problems) || problems.Len() > 0 {
		t.Errorf("refused at its ceiling: %s", &problems)
	}
	if judge(got, map[string][]string{"b": {"here.go"}}, ceilings{"b": 2}, nil, &problems) || !strings.Contains(problems.String(), "here.go") {
		t.Errorf("not refused with its place: %q", &problems)
	}
	if judge(got, nil, ceilings{"c": 2}, nil, &problems) {
		t.Error("a ceiling of what is not measured was passed over")
	}
	if !judge(got, nil, ceilings{"b": 2}, ceilings{"b": 3}, &problems) || !strings.Contains(problems.String(), "debt: b") {
		t.Errorf("refused though it stands in the debts, or not printed: %q", &problems)
	}
	if judge(measures{"serve " + cycleLines: 301}, nil, ceilings{}, nil, &problems) {
		t.Error("a package without a line of its own has no ceiling")
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

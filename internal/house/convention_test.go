package main

import (
	"slices"
	"testing"
)

func TestConventions_NamesOfTests(t *testing.T) {
	t.Parallel()
	code := &file{path: "p/lane_start.go", decls: []string{"lane", "backoff"}}
	test := func(path string, tests ...string) *file { return &file{path: path, test: true, tests: tests} }
	got := conventions([]*file{
		code,
		test("p/lane_start_test.go", "TestLane_Starts", "TestBackoff_Doubles", "TestLaneStart_IsOnce", "TestItStarts"),
		test("p/lane_start_seek_test.go", "TestLane"),
		test("p/seek_test.go"),
		test("p/helpers_test.go"),
		test("integration/seek_test.go", "TestAll"),
	})
	if want := []string{"p/seek_test.go"}; !slices.Equal(got[strayFiles], want) {
		t.Errorf("stray files %v, want %v", got[strayFiles], want)
	}
	if want := []string{"p/lane_start_test.go: TestItStarts"}; !slices.Equal(got[strayTests], want) {
		t.Errorf("stray tests %v, want %v", got[strayTests], want)
	}
}

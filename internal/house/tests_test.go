package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A test costs what its parts took: the time of a test with parallel subtests counts their waits
// for each other.
func TestCosts_AreThoseOfTheParts(t *testing.T) {
	t.Parallel()
	got, err := costsOf("race", bufio.NewScanner(strings.NewReader(`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/x","Elapsed":2}
{"Action":"output","Package":"p","Test":"TestA/y","Output":"text"}
{"Action":"pass","Package":"p","Test":"TestA/y/1","Elapsed":3}
{"Action":"pass","Package":"p","Test":"TestA/y","Elapsed":20}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":40}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":1.5}
{"Action":"pass","Package":"p","Elapsed":41}
`)))
	must(t, err)
	seconds := map[string]float64{}
	for _, c := range got {
		seconds[c.test] = c.seconds
		if !c.race() || c.most() != mostCPU {
			t.Errorf("%+v is no run under the race detector, or may cost %v", c, c.most())
		}
	}
	if len(got) != 2 || seconds["TestA"] != 5 || seconds["TestB"] != 1.5 {
		t.Errorf("the tests cost %v, want 5 and 1.5", seconds)
	}
	apart, err := costsOf("test", bufio.NewScanner(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestA/x","Elapsed":2}
{"Action":"pass","Package":"p","Test":"TestA/y","Elapsed":3}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":40}
`)))
	if err != nil || len(apart) != 2 {
		t.Errorf("without the race detector the parts are %v (%v), want two", apart, err)
	}
	if _, err := costsOf("test", bufio.NewScanner(strings.NewReader("ok  p 1s\n"))); err == nil {
		t.Error("text was read as events")
	}
}

// What a run shows as too dear is run alone, and judged by that.
func TestJudgeTests_RunsADearTestAlone(t *testing.T) {
	t.Parallel()
	suspect := cost{run: "test", pkg: module + "/internal/cases", test: "TestCross_HasEachValue", seconds: mostWall + 1}
	var printed strings.Builder
	tooDear, err := judgeTests("../..", nil, []cost{suspect}, nil, &printed)
	if err != nil || len(tooDear) > 0 || !strings.Contains(printed.String(), "alone") {
		t.Errorf("too dear are %q, %v; printed %q", tooDear, err, &printed)
	}
}

// On a busy machine a test takes longer than it costs: its share of its package's CPU seconds
// counts.
func TestCosts_OfABusyMachineAreSharesOfItsCPU(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"race.jsonl": `{"Action":"pass","Package":"` + module + `/dlq","Test":"TestA","Elapsed":30}
{"Action":"pass","Package":"` + module + `/dlq","Test":"TestB","Elapsed":10}
{"Action":"pass","Package":"` + module + `/headers","Test":"TestC","Elapsed":12}
`,
		"race.cpu": "dlq 15.0 1.0\n",
	} {
		file := filepath.Join(dir, recorded, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o777))
		must(t, os.WriteFile(file, []byte(text), 0o666))
	}
	got, err := costs(dir)
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, want := range []float64{12 / suspectCPU, 12, 4 / suspectCPU} { // dearest first
		if got[i].expected() != want {
			t.Errorf("%s may cost %v, want %v", got[i].test, got[i].expected(), want)
		}
	}
	file := filepath.Join(dir, recorded, "race.cpu")
	must(t, os.WriteFile(file, []byte("dlq fast\n"), 0o666))
	if _, err := costs(dir); err == nil {
		t.Error("text was read as seconds")
	}
}

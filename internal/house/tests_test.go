package main

import (
	"bufio"
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
	if err != nil {
		t.Fatal(err)
	}
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
	suspect := cost{"test", "github.com/sidingkafka/siding/internal/cases", "TestCross_HasEachValue", mostWall + 1}
	var printed strings.Builder
	tooDear, err := judgeTests("../..", []cost{suspect}, nil, &printed)
	if err != nil || len(tooDear) > 0 || !strings.Contains(printed.String(), "alone") {
		t.Errorf("too dear are %q, %v; printed %q", tooDear, err, &printed)
	}
}

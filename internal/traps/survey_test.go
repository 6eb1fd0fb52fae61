package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// surveyOf surveys a tree with these files.
func surveyOf(t *testing.T, files map[string]string) *survey {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := readTree(tree)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSurvey_TrapIsTheFirstLineOfATestsComment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, text string
		tests            map[int]string
		problem          string
	}{
		{
			"a test", "consumer/a_test.go",
			"package a\n\n// Trap 3: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			map[int]string{3: "consumer/a_test.go:4 TestBoth"},
			"",
		},
		{
			"a fuzz target of a nested module", "integration/a_test.go",
			"package a\n\n// Trap 13: made up.\nfunc FuzzDue(f *testing.F) {}\n",
			map[int]string{13: "integration/a_test.go:4 FuzzDue"},
			"",
		},
		{
			"of two traps, one of them in two lines", "a_test.go",
			"package a\n\n// Trap 3: two failures,\n// on one partition.\n// Trap 4: another's counter.\n//\n// The story.\nfunc TestBoth(t *testing.T) {}\n",
			map[int]string{3: "a_test.go:8 TestBoth", 4: "a_test.go:8 TestBoth"},
			"",
		},
		{
			"an entry of the suite", "internal/suite/bad.go",
			"package suite\n\nvar bad = map[string]func(){\n\t\"first\": func() {},\n\t// Trap 5: nothing is consumed.\n\t\"second\": func() {},\n}\n",
			map[int]string{5: "internal/suite/bad.go:6 bad/second"},
			"",
		},
		{
			"an entry of another map is no test", "internal/suite/bad.go",
			"package suite\n\nvar sizes = map[string]int{\n\t// Trap 5: nothing is consumed.\n\t\"second\": 2,\n}\n",
			nil, "internal/suite/bad.go:4 names a trap, but is not the comment of a test",
		},
		{
			"within a test", "a_test.go",
			"package a\n\nfunc TestBoth(t *testing.T) {\n\t// Trap 3: two failures.\n}\n",
			nil, "a_test.go:4 names a trap, but is not the comment of a test",
		},
		{
			"of the code", "a.go",
			"package a\n\n// Trap 3: two failures.\nfunc TestBoth() {}\n",
			nil, "a.go:3 names a trap, but is not the comment of a test",
		},
		{
			"of a function that helps", "a_test.go",
			"package a\n\n// Trap 3: two failures.\nfunc both() {}\n",
			nil, "a_test.go:3 names a trap",
		},
		{
			"of a method", "a_test.go",
			"package a\n\n// Trap 3: two failures.\nfunc (h) TestBoth() {}\n",
			nil, "a_test.go:3 names a trap",
		},
		{
			"not the first line", "a_test.go",
			"package a\n\n// Once upon a time.\n// Trap 3: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			map[int]string{3: "a_test.go:5 TestBoth"},
			"in the 2. line",
		},
		{
			"a number that there is not", "a_test.go",
			"package a\n\n// Trap 99: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			nil, "there is no trap 99",
		},
		{
			"zero", "a_test.go",
			"package a\n\n// Trap 0: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			nil, "there is no trap 0",
		},
		{
			"a number beyond all", "a_test.go",
			"package a\n\n// Trap 99999999999999999999: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			nil, "there is no trap 99999999999999999999",
		},
		{
			"several in one line", "a_test.go",
			"package a\n\n// Traps 1, 5 and 8: bounded.\nfunc TestBoth(t *testing.T) {}\n",
			nil, "not of the form",
		},
		{
			"nothing but a number", "a_test.go",
			"package a\n\n// Trap 3:\nfunc TestBoth(t *testing.T) {}\n",
			nil, "not of the form",
		},
		{
			"in the middle of a sentence", "a.go",
			"package a\n\n// F avoids trap 3: two failures. See Trap 4: another's counter.\nfunc F() {}\n",
			nil, "",
		},
		{
			"not read", ".cache/a_test.go",
			"package a\n\n// Trap 99: two failures.\nfunc TestBoth(t *testing.T) {}\n",
			nil, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := surveyOf(t, map[string]string{tt.file: tt.text})
			got := map[int]string{}
			for n, tests := range s.tests {
				got[n] = fmt.Sprint(tests)
			}
			want := map[int]string{}
			for n, test := range tt.tests {
				want[n] = "[" + test + "]"
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("tests %v, want %v", got, want)
			}
			if all := strings.Join(s.problems, "\n"); tt.problem == "" && all != "" || !strings.Contains(all, tt.problem) || len(s.problems) > 1 {
				t.Errorf("problems %q, want %q alone", s.problems, tt.problem)
			}
		})
	}
}

// every returns a file with a test for each trap except some.
func every(without func(n int) bool) map[string]string {
	text := "package a\n"
	for n := 1; n < len(traps); n++ {
		if !without(n) {
			text += fmt.Sprintf("\n// Trap %d: fallen into.\nfunc Test%d(t *testing.T) {}\n", n, n)
		}
	}
	return map[string]string{"a_test.go": text}
}

// one returns a list of later traps.
var one = map[int]string{24: "redrive"}

func isOne(n int) bool { return n == 24 }

func TestSurvey_EachTrapHasATestOrComesLater(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		without func(n int) bool
		want    []string // problems
	}{
		{"all but the one for later", isOne, nil},
		{"one is missing", func(n int) bool { return n == 13 || isOne(n) }, []string{"trap 13 has no test: " + traps[13]}},
		{"the one for later has a test", func(int) bool { return false }, []string{"trap 24 has a test, a_test.go:73 Test24: take it off the list of those that come later"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := surveyOf(t, every(tt.without))
			if s.judge(one); !slices.Equal(s.problems, tt.want) {
				t.Errorf("problems %q, want %q", s.problems, tt.want)
			}
		})
	}
}

func TestSurvey_EachTrapHasATestHere(t *testing.T) {
	t.Parallel()
	s, err := readTree(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	s.judge(later)
	for _, p := range s.problems {
		t.Error(p)
	}
}

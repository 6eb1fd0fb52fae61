package text

import (
	"strings"
	"testing"
)

func TestDepth_SkipsStrings(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{`{"a":[1,{"b":"]]]}"}]}`: 3, `"[[["`: 0, `"\"[["`: 0, ``: 0, `]]][`: 1, `"[`: 0} {
		if got := Depth(s); got != want {
			t.Errorf("%s nests %d deep, want %d", s, got, want)
		}
	}
}

// Brackets in comments would hide those around them.
func TestDepthOfProto_SkipsStringsAndComments(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"message A { /*}*/ message B { //}\n message C { option x = '}'; }": 3, "// {": 0, "/* {": 0, "\"{\n{": 1, "{'}": 1,
	} {
		if got := DepthOfProto(s); got != want {
			t.Errorf("%s nests %d deep, want %d", s, got, want)
		}
	}
}

func TestNumbers_RefusesWhatTakesLong(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		`{"a":[1,-2.5e+10,1E300]}`: true, `"1e9999"`: true, `{"a\"1e9999":1}`: true, ``: true, `1e1001`: false, `[1,-1E-1001]`: false, `1e99999999999999999999`: false,
		strings.Repeat("1", 1001): false, `{"a":` + strings.Repeat("1", 1000) + `}`: true,
	} {
		if err := Numbers(s); (err == nil) != want {
			t.Errorf("%.40s: %v", s, err)
		}
	}
}

package classify

import (
	"strings"
	"testing"
)

func TestCleanClass_GivesAValidClass(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "",
		"orders.SKUError":        "orders.SKUError",
		"A-z_0./*":               "A-z_0./*",
		"tax table":              "tax_table",
		"größe":                  "gr__e",
		"a\x00b\xffc":            "a_b_c",
		"a:b,c":                  "a_b_c",
		"\u2028":                 "_",
		strings.Repeat("x", 200): strings.Repeat("x", 128),
		strings.Repeat("é", 200): strings.Repeat("_", 128),
	} {
		if got := CleanClass(in); got != want {
			t.Errorf("CleanClass(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestValidClass_IsTheFormat(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		s := string([]byte{byte(c)})
		if got, want := ValidClass(s), classFormat.MatchString(s); got != want {
			t.Errorf("ValidClass(%q) = %v, want %v", s, got, want)
		}
	}
	if ValidClass("") || ValidClass(strings.Repeat("x", 129)) {
		t.Error("an empty or too long class is valid")
	}
}

type pair[A, B any] struct{}

func TestClass_IsTheInnermostNamedType(t *testing.T) {
	t.Parallel()
	type local struct{ error }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{pair[int, string]{}, "classify.pair_int_string_"},
		{local{errBare}, "classify.local"}, // embeds, does not wrap
		{struct{ error }{errBare}, "unclassified"},
	} {
		if got := new(Classifier).Classify(tt.err).Class; got != tt.want {
			t.Errorf("class of %T = %q, want %q", tt.err, got, tt.want)
		}
	}
}

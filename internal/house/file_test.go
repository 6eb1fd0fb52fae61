package main

import (
	"slices"
	"strings"
	"testing"
)

func TestReadFile_MeasuresText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 25)
	src := "package p\n\n// " + long + "\n//go:generate " + long + "\nfunc TestX_Y() {\n\t_ = `a\n\nb`\n}\n\n/* " + long + " */\nvar v = 1 // short\n"
	f, err := readFile("top/x_test.go", []byte(src))
	must(t, err)
	if want := []int{3, 11}; !slices.Equal(f.longComments, want) {
		t.Errorf("comment lines over 100 columns are %d, want %d: a directive is none", f.longComments, want)
	}
	if f.lines != 12 || f.bare != 6 {
		t.Errorf("%d lines, %d of them bare; want 12 and 6", f.lines, f.bare)
	}
	if !slices.Equal(f.tests, []string{"TestX_Y"}) || !slices.Equal(f.decls, []string{"TestX_Y", "v"}) || !slices.Equal(f.functions, []int{5}) {
		t.Errorf("tests %v, declarations %v, functions of %v lines", f.tests, f.decls, f.functions)
	}
}

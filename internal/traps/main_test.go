package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMain_ExitCodeSaysWhetherATrapIsOpen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files map[string]string
		code  int
		out   string
		err   string
	}{
		{every(isOne), 0, " 1  " + traps[1] + "\n    a_test.go:4 Test1\n 2  ", ""},
		{every(isOne), 0, "    later, with redrive\n", ""},
		{map[string]string{"a.go": "package a\n"}, 1, traps[28], "traps: trap 1 has no test: "},
		{map[string]string{"a.go": "pack age\n"}, 2, "", "traps: a.go:1:1: "},
	} {
		tree := fstest.MapFS{}
		for name, text := range tt.files {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
		var out, problems bytes.Buffer
		code := run(tree, one, &out, &problems)
		if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.HasPrefix(problems.String(), tt.err) || tt.err == "" && problems.Len() > 0 {
			t.Errorf("code %d, output %q, problems %q; want %d, %q, %q", code, out.String(), problems.String(), tt.code, tt.out, tt.err)
		}
	}
}

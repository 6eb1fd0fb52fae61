package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestMain_ExitCodes(t *testing.T) {
	t.Parallel()
	dir := string(newRepository(t))
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-C", dir, "prepare"}, 2, "make release VERSION=v0.1.0"},
		{[]string{"-C", dir, "publish"}, 2, "make release VERSION=v0.1.0"},
		{[]string{"-x"}, 2, "flag provided but not defined"},
		{[]string{"-C", dir, "prepare", "1.0"}, 1, "release: version \"1.0\""},
		{[]string{"-C", t.TempDir(), "prepare", "v0.1.0"}, 1, "not a git repository"},
	} {
		var out, problems bytes.Buffer
		if code := run(tt.args, &out, &problems); code != tt.code || !strings.Contains(problems.String(), tt.want) {
			t.Errorf("%q: code %d, problems %q; want %d, %q", tt.args, code, &problems, tt.code, tt.want)
		}
	}
}

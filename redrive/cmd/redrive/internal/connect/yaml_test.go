package connect

import (
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a file has, the answer is profiles, or an error that begins with the name of the file.
func FuzzParseYAML(f *testing.F) {
	for _, text := range []string{"profile: a\nprofiles: {a: &a {brokers: [x]}, b: {<<: *a}}", "profiles: &p {a: *p}", "a: &a *a", "? [a]\n: b", "- - -\n", "!!int x", "<<: [{profile: a}]", "{", "\x00", "profile: |\n b\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := write(t, filepath.Join(t.TempDir(), "c"), text)
		read, err := readFile(file)
		if err == nil {
			for name := range read.profiles {
				_, err = read.layer(name, func(string) string { return "" })
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), file+":") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

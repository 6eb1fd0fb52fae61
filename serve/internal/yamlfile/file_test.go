package yamlfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

type shelf struct {
	Name  string           `yaml:"name"`
	Boxes []box            `yaml:"boxes"`
	By    map[string][]box `yaml:"by"`
	Small int8             `yaml:"small"`
	Wide  float64          `yaml:"wide"`
	Open  *bool            `yaml:"open"`
	Note  string           `yaml:"-"`
}

type box struct {
	Age time.Duration `yaml:"age"`
}

func problem(t *testing.T, text string) string {
	t.Helper()
	if _, err := yamlfile.Decode("f", []byte(text), new(shelf)); err != nil {
		return err.Error()
	}
	return ""
}

func TestDecode_SetsWhatTheFileHas(t *testing.T) {
	t.Parallel()
	var s shelf
	_, err := yamlfile.Decode("f", []byte("name: |\n  two\n  lines\nboxes: [{age: 2d}, {age: '90s'}, ]\nby: {a.b: [{age: 0}]}\nsmall: -128\nwide: 3\nopen: true\n"), &s)
	if err != nil || s.Name != "two\nlines\n" || len(s.Boxes) != 2 || s.Boxes[0].Age != 48*time.Hour || s.Boxes[1].Age != 90*time.Second || len(s.By["a.b"]) != 1 || s.Small != -128 || s.Wide != 3 || !*s.Open {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDecode_TakesAnchorsAndMerges(t *testing.T) {
	t.Parallel()
	var s shelf
	_, err := yamlfile.Decode("f", []byte("boxes:\n  - &old {age: 1h}\n  - *old\n  - <<: *old\n"), &s)
	if err != nil || len(s.Boxes) != 3 || s.Boxes[1].Age != time.Hour || s.Boxes[2].Age != time.Hour {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDecode_ReadsNumbersAsTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"12", "-3", "1.5", "true", "'0123'", `"1e3"`, "12e", "0a"} {
		var s shelf
		if _, err := yamlfile.Decode("f", []byte("name: "+text), &s); err != nil || s.Name != strings.Trim(text, `'"`) {
			t.Errorf("%s: %q, %v", text, s.Name, err)
		}
	}
}

// A text is what the file has, or refused. It is never another way to write the same number: a hash
// may have digits only.
func TestDecode_ChangesNoText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1e3", "0x1F", "0o17", "0b1", strings.Repeat("9", 64), strings.Repeat("0", 64), "1_000", ".5", "1.", "1.50", "+1", "-0", "True", "no", ".inf", ".NaN", "2026-11-23", "1:30"} {
		var s shelf
		if _, err := yamlfile.Decode("f", []byte("name: "+text), &s); err == nil && s.Name != text {
			t.Errorf("%s became %q", text, s.Name)
		}
	}
}

func TestDecode_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"name: a\nNote: b":              "f:2: Note: there is no such key; allowed are name, boxes, by, small, wide, open",
		"note: b":                       "f:1: note: there is no such key; allowed are name, boxes, by, small, wide, open",
		"name: 0123":                    "f:1: name: it is not read as a text: put it in quotes",
		"small: 128":                    `f:1: small: "128" is not within the numbers that are possible here`,
		"wide: .inf":                    `f:1: wide: ".inf" is not a number`,
		"open: 1":                       `f:1: open: "1" is not true or false`,
		"by: [a]":                       "f:1: by: it is a list, but names with values are expected",
		"by:\n  a:\n    - age: 1\n":     `f:3: by.a[0].age: "1" is not a duration: as in 90s, 5m, 4h, 180d`,
		"- name: a":                     "f:1: it is a list, but keys with values are expected: name, boxes, by, small, wide, open",
		"boxes:\n  - age: 1d\n  - agee": "f:3: boxes[1]: it is a single value, but keys with values are expected: age",
	} {
		if got := problem(t, text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The lines are in order, whatever found the mistakes, and those of other files come last.
func TestFile_AtOrdersByLine(t *testing.T) {
	t.Parallel()
	other, err := yamlfile.Parse("other", []byte("a: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := yamlfile.Parse("f", []byte("name: a\nboxes:\n  - age: 1h\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(key string) error { return &yamlfile.KeyError{Key: key, Problem: "no"} }
	got := f.At(errors.Join(other.At(at("a")), at("boxes[0].age"), errors.Join(at("boxes[0].size"), nil), at("name"), at("missing"), errors.New("disk"))).Error()
	want := "f: missing: no\nf: disk\nf:1: name: no\nf:3: boxes[0].age: no\nf:3: boxes[0].size: no\nother:1: a: no"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if f.At(nil) != nil {
		t.Error("an error of nothing")
	}
}

// Whatever a file has, the answer is an error in lines that begin with its name, or none.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"name: a\n", "boxes: [{age: 1h}]", "by: {a: [{age: x}]}", "a: &a [*a]", "? [a]\n: b", "!!int x", "- - -\n", "---\n---\n", "name: *x", "<<: {name: a}", "\x00", "a: |\n b\n", "{", "[a: b]", "1: 2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := yamlfile.Decode("f", []byte(text), new(shelf))
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

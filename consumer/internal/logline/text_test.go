package logline

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestText_IsOneLine(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                          "",
		"the gateway is busy":       "the gateway is busy",
		"größer als 5 €":            "größer als 5 €",
		"one\ntwo":                  "one | two",
		"one\r\n\r\n\t  two\n":      "one | two",
		"\n\nfirst":                 "first",
		"a\tb":                      "a b",
		"red \x1b[31m":              `red \x1b[31m`,
		"nul \x00":                  `nul \x00`,
		"bad \xff utf8":             `bad \xff utf8`,
		"turned \u202e around":      `turned \u202e around`,
		"separated\u2028by unicode": "separated | by unicode",
	} {
		if got := Text(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\nb")
	f.Add(strings.Repeat("x", 3000))
	f.Add(strings.Repeat("\n\u2028", 3000))
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if len(got) > MaxText+len("…") || !utf8.ValidString(got) {
			t.Errorf("%q became %q", s, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q became %q", s, got)
			}
		}
		if len(s) <= MaxText && isPlain(s) && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestWords_AreAsPeopleWriteDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                   "0s",
		1234 * time.Nanosecond:              "0s",
		499 * time.Microsecond:              "0s",
		1500*time.Microsecond + 123:         "2ms",
		999_600 * time.Microsecond:          "1s",
		1234567 * time.Microsecond:          "1.23s",
		10 * time.Second:                    "10s",
		90 * time.Second:                    "1m30s",
		time.Hour:                           "1h",
		20 * time.Minute:                    "20m",
		2*time.Hour + 1234*time.Millisecond: "2h0m1s",
		-90 * time.Second:                   "-1m30s",
		100*time.Hour + 5*time.Minute + 1:   "100h5m",
	} {
		if got := Words(d); got != want {
			t.Errorf("%d ns are %q, want %q", d, got, want)
		}
	}
}

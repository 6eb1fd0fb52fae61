package classify

import (
	"strings"
	"testing"
)

func TestNormalise_Messages(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"connection refused":                "connection refused",
		"order 83127: unknown SKU":          "order #: unknown SKU",
		"offset -1":                         "offset #",
		"a-b c-3":                           "a-b c-#",
		"took 1m30.5s, limit 150ms":         "took #, limit #",
		"dial tcp 10.0.0.1:5432: refused":   "dial tcp #: refused",
		"at 2024-01-02T03:04:05.678Z":       "at #",
		"at 2024-01-02 03:04:05 +0200":      "at #",
		"offsets [1 2, 3]":                  "offsets [#]",
		"1,000,000 rows":                    "# rows",
		"1.5e+06 rows":                      "# rows",
		"orders/3/1045":                     "orders/#",
		"orders-3 is behind":                "orders-# is behind",
		"utf8 sha256 x509":                  "utf# sha# x#",
		"node12 is down":                    "node# is down",
		"0xdeadbeef":                        "#",
		"deadbeef is hex, facade is a word": "# is hex, facade is a word",
		"id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 gone": "id # gone",
		"id deadbeef-cafe-babe-face-abcdefabcdef gone": "id # gone",
		"ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV":              "ulid #",
		"req_9fK2xQ failed":                            "req_# failed",
		`unknown field "colour"`:                       `unknown field ""`,
		`unknown field 'colour' in 'x y'`:              `unknown field '' in ''`,
		"near `SELECT 1`":                              "near ``",
		`escaped "a \" b" c`:                           `escaped "" c`,
		"can't parse, won't retry":                     "can't parse, won't retry",
		"key 'it's odd' end":                           "key '' end",
		"unclosed 'quote 12":                           "unclosed 'quote #",
		`unclosed "quote "closed" "`:                   `unclosed ""closed""`,
		"two\nlines \t and  blanks ":                   "two lines and blanks",
		"größe 7 überschritten":                        "größe # überschritten",
		"100% of $5":                                   "#% of $#",
		"é":                                            "é",
		"--5 x--5":                                     "-# x-#",
	} {
		if got := normalised(in); got != want {
			t.Errorf("normalised(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

func normalised(s string) string {
	var n normaliser
	n.message(s)
	return string(n.buf[:n.n-1])
}

func TestNormalise_IsBounded(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		strings.Repeat("word ", 1<<20),
		strings.Repeat("7", 1<<20) + " x",
		strings.Repeat(`"`, 1<<20),
		strings.Repeat("'a", 1<<20),
		strings.Repeat("(", 1<<20),
		strings.Repeat("é", 1<<20),
	} {
		if n := len(normalised(s)); n > maxNormalised {
			t.Errorf("normalised(%.10q…) has %d bytes, want at most %d", s, n, maxNormalised)
		}
	}
}

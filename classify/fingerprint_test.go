package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
	"unsafe"
)

func TestFingerprint_GroupsTheSameFault(t *testing.T) {
	t.Parallel()
	const class = "unclassified"
	same := [][]string{
		{"order 7: unknown SKU 'A-1'", "order 83127: unknown SKU 'zz top'"},
		{"timeout after 1.5s", "timeout after 150ms", "timeout after 2m0s"},
		{"batch [1 2 3] refused", "batch [4] refused"},
	}
	for _, group := range same {
		for _, m := range group[1:] {
			if fingerprint(class, m, "") != fingerprint(class, group[0], "") {
				t.Errorf("%q and %q differ", group[0], m)
			}
		}
	}
	seen := map[string]string{}
	for _, in := range [][3]string{
		{class, same[0][0], ""},
		{class, same[1][0], ""},
		{class, same[2][0], ""},
		{"timeout", same[0][0], ""},
		{class, same[0][0], "main.handle"},
		{class, "", ""},
		{"", class, ""},
	} {
		fp := fingerprint(in[0], in[1], in[2])
		if other, ok := seen[fp]; ok {
			t.Errorf("%q and %q have the same fingerprint", in, other)
		}
		seen[fp] = strings.Join(in[:], "|")
	}
}

// Redrive and operators compare fingerprints that are months old: fingerprints are stable within a
// major version. If this test fails, the code is wrong.
func TestFingerprint_IsStable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ class, message, frame, want string }{
		{"unclassified", "", "", "194b3769fedb16fe"},
		{"timeout", "context deadline exceeded", "", "e3d4f877c0cedd1b"},
		{"orders.SKUError", "order 7: unknown SKU 'A-1' (3f2504e0-4f89-11d3-9a0c-0305e82c3301)", "", "57a0426ed9ca0487"},
		{"panic.runtime.boundsError", "panic: runtime error: index out of range [5] with length 3", "main.handle", "e57f43728f38dbe5"},
	} {
		if got := fingerprint(tt.class, tt.message, tt.frame); got != tt.want {
			t.Errorf("fingerprint(%q, %q, %q) = %s, want %s", tt.class, tt.message, tt.frame, got, tt.want)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add("timeout", `order 7: "x" 'it's' 3f2504e0-4f89-11d3-9a0c-0305e82c3301`, "main.f")
	f.Add("", "'\"`\\", "")
	f.Fuzz(func(t *testing.T, class, message, frame string) {
		fp := fingerprint(CleanClass(class), message, frame)
		if len(fp) != 16 || strings.Trim(fp, "0123456789abcdef") != "" {
			t.Errorf("fingerprint %q, want 16 hex digits", fp)
		}
		got := normalised(message)
		if strings.ContainsAny(got, "0123456789") {
			t.Errorf("normalised(%q) = %q has a digit", message, got)
		}
		if len(message) < maxNormalised/2 && utf8.ValidString(message) && !utf8.ValidString(got) {
			t.Errorf("normalised(%q) = %q is no UTF-8", message, got)
		}
	})
}

func TestFingerprint_IsTheSameWhateverCameBefore(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				class, message := fmt.Sprintf("class%d", i/4%3), fmt.Sprintf("message %s", string(rune('a'+i/2%300)))
				sum := sha256.Sum256([]byte(class + "\x00" + message + "\x00\x00"))
				if got, want := fingerprint(class, message, ""), hex.EncodeToString(sum[:8]); got != want {
					t.Errorf("%s, %s: got %s, want %s", class, message, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFingerprint_KnownOneTakesNoMemory(t *testing.T) {
	for _, message := range []string{"message", strings.Repeat("m", maxNormalised+1)} {
		fingerprint("class", message, "")
		fingerprint("class", message, "")
		if n := testing.AllocsPerRun(100, func() { fingerprint("class", message, "") }); n > 0 {
			t.Errorf("%s: it takes %v allocations", message, n)
		}
	}
}

// Neither a million messages nor long ones stay in memory: with an id, each would come once.
func TestFingerprint_KeepsLittle(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for range 3 {
		fingerprint("class", long, "")
		fingerprint("class", long[:maxNormalised], "")
	}
	once := func() { fingerprint("class", strconv.Itoa(rand.Int()), "") }
	once()
	if n := testing.AllocsPerRun(1000, once); n > 1 {
		t.Errorf("a message that came once takes %v allocations, want that of its text", n)
	}
	for i := range repeats {
		if p := repeats[i].last.Load(); p != nil && (len(p.message) > maxNormalised || unsafe.StringData(p.message) == unsafe.StringData(long)) {
			t.Errorf("a text of %d bytes is kept, or one that it is part of", len(p.message))
		}
	}
}

func TestNormaliser_Messages(t *testing.T) {
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

func TestNormaliser_IsBounded(t *testing.T) {
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

package classify

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// One bug is one group: messages that differ by a value are one, and different sentences are not.
func TestMask_FoldsValuesAndNoSentences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		fold bool
	}{
		{"no rate for EUR", "no rate for USD", true},
		{"no rate for region DE", "no rate for region USA", true},
		{"EUR: no rate", "CHF: no rate", true},
		{"pair EUR/USD is closed", "pair GBP/JPY is closed", true},
		{"over the limit of 5 EUR", "over the limit of 1,200.50 GBP", true},
		{"tenant=acme is over its quota", "tenant=globex is over its quota", true},
		{"no address of customer Anna Schmidt", "no address of customer Bob", true},
		{"unknown SKU 'A-1'", "unknown SKU 'zz top'", true},
		{"no mailbox anna@example.com", "no mailbox b.c@d.org", true},
		{"dial tcp [fe80::1]:9092: refused", "dial tcp [2001:db8::ab:cafe]:9093: refused", true},
		{"closed since Mon, 30 Nov 2026", "closed since 2026-11-30T07:02:05Z", true},
		{"order 3f2504e0-4f89-11d3-9a0c-0305e82c3301 gone", "order 7 gone", true},

		{"no rate for EUR", "no price for EUR", false},
		{"no rate for EUR", "no rate for EUR today", false},
		{"TLS handshake failed", "TCP handshake failed", false},
		{"unexpected EOF", "unexpected NUL", false},
		{"invalid SKU", "invalid IBAN", false},
		{"ERR_BAD_SSL", "ERR_OLD_SSL", false},
		{"NO RATE FOR EUR", "NO RATE FOR USD", false}, // which of the words is the code?
		{"waiting for Redis", "waiting for Postgres", false},
		{"field Order.amount is missing", "field Order.customer is missing", false},
		{"User Not Found", "User Is Blocked", false},
		{"the customer is blocked", "the customer is unknown", false},
		{"pay: reason=declined", "pay: reason=expired", false},
		{"code = Unavailable", "code = NotFound", false},
		{"may not", "May not", false},
	} {
		if a, b := Mask(tt.a), Mask(tt.b); (a == b) != tt.fold {
			t.Errorf("%q and %q: masks %q and %q, want them equal: %v", tt.a, tt.b, a, b, tt.fold)
		}
	}
}

// Pieces of messages at which the rules of a mask meet.
var piecesOfMessages = rapid.SampledFrom([]string{
	" ", " ", " ", "  ", "\n", "-", "-5", "5", "12", "#", "'", `"`, "`", "\\", "=", ":", "::", ".", ",", "/", "_", "@", "%", "(", "é", "\x80", "\x00",
	"EUR", "US", "TLS", "VISA", "a", "abc", "word", "customer", "tenant", "Anna", "Schmidt", "Not", "reason", "key", "Mon", "Nov", "May",
	"deadbeef", "fade", "cafe", "fe80", "utf8", "x9y", "k=v", "reason=no", "a@b.c", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "don't", "'q'", `"q r"`,
})

// Whoever masks what is masked, such as a sample of a summary, gets the same.
func TestMask_IsItsOwnMask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(piecesOfMessages, 0, rapid.SampledFrom([]int{8, 30, 400}).Draw(t, "most")).Draw(t, "pieces")
		message := strings.Join(pieces, "")
		once := Mask(message)
		if len(once) > maxMasked {
			t.Fatalf("Mask(%q) has %d bytes", message, len(once))
		}
		if twice := Mask(once); twice != once {
			t.Fatalf("of %q the mask is\n%q, and that of it\n%q", message, once, twice)
		}
	})
}

// Half a token may look like what it is not: of ERR_EUR, EUR alone would be a code.
func TestMask_HasNoHalfToken(t *testing.T) {
	t.Parallel()
	for n := range maxMasked + 10 {
		once := Mask(strings.Repeat("w", n) + " EUR_BAD.EUR-USD Mondays customers x@EUR")
		if twice := Mask(once); twice != once || len(once) > maxMasked {
			t.Errorf("behind a word of %d bytes the mask ends in %q, and that of it in %q", n, once[max(0, len(once)-20):], twice[max(0, len(twice)-20):])
		}
	}
	if got := Mask(strings.Repeat("x-", maxMasked)); got != "#" {
		t.Errorf("a token that is too long is %q, want #", got)
	}
}

// Text of a whole page has a mask that costs no more than that of its beginning.
func TestMask_ReadsTheBeginning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		begin := strings.Repeat(strings.Join(rapid.SliceOfN(piecesOfMessages, 1, 50).Draw(t, "pieces"), "")+".", maxScanned)[:maxScanned]
		rest := rapid.SampledFrom([]string{"'", "5", " EUR", "x", "@x.y", "=v"}).Draw(t, "rest")
		if got, want := Mask(begin+strings.Repeat(rest, 1<<20/len(rest))), Mask(begin); got != want {
			t.Fatalf("%q… is masked as\n%q, want what the first %d bytes are\n%q", begin[:50], got, maxScanned, want)
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{`order 7: "x" 'it's' 3f2504e0-4f89-11d3-9a0c-0305e82c3301`, "'\"`\\", "k=v fe80::1 a@b Mon Nov 3 customer Anna EUR", strings.Repeat("a_", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := Mask(message)
		if len(got) > maxMasked || strings.ContainsAny(got, "0123456789") {
			t.Errorf("Mask(%q) = %q, %d bytes", message, got, len(got))
		}
		if again := Mask(got); again != got {
			t.Errorf("Mask(%q) = %q, whose mask is %q", message, got, again)
		}
		if len(message) < maxScanned && utf8.ValidString(message) && !utf8.ValidString(got) {
			t.Errorf("Mask(%q) = %q is no UTF-8", message, got)
		}
	})
}

func TestMask_Messages(t *testing.T) {
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
		"id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 gone":    "id # gone",
		"id deadbeef-cafe-babe-face-abcdefabcdef gone":    "id # gone",
		"ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV":                 "ulid #",
		"req_9fK2xQ failed":                               "req_# failed",
		`unknown field "colour"`:                          `unknown field ""`,
		`unknown field 'colour' in 'x y'`:                 `unknown field '' in ''`,
		"near `SELECT 1`":                                 "near ``",
		`escaped "a \" b" c`:                              `escaped "" c`,
		"can't parse, won't retry":                        "can't parse, won't retry",
		"key 'it's odd' end":                              "key '' end",
		"unclosed 'quote 12":                              "unclosed 'quote #",
		`unclosed "quote "closed" "`:                      `unclosed ""closed""`,
		"two\nlines \t and  blanks ":                      "two lines and blanks",
		"größe 7 überschritten":                           "größe # überschritten",
		"100% of $5":                                      "#% of $#",
		"é":                                               "é",
		"--5 x--5":                                        "-# x-#",
		"mail to anna.b@example.com bounced":              "mail to # bounced",
		"dial [fe80::ab:cafe]:9092 and ab:cd:ef:12:34:56": "dial [#]:# and #",
		"Foo::Bar::baz is no address, dead::beef neither": "Foo::Bar::baz is no address, dead::beef neither",
		"at Mon Nov 30 07:02:05 UTC 2026: late":           "at #: late",
		"since Mon, 30 Nov 2026":                          "since #",
		"on May 5 it may March on":                        "on # it may March on",
		"5 EUR for 3 MB":                                  "# for #",
		"rate EUR/USD, and EUR.":                          "rate #, and #.",
		"ERR_BAD_SSL, EUR-USD, x.EUR":                     "ERR_BAD_SSL, EUR-USD, x.EUR",
		"NO RATE FOR EUR":                                 "NO RATE FOR EUR",
		"I/O of SEPA and VISA, TLS and TCP/IP":            "I/O of SEPA and VISA, TLS and TCP/IP",
		"customer Anna Schmidt is blocked":                "customer # is blocked",
		"tenant: Acme is blocked":                         "tenant: # is blocked",
		"User Not Found":                                  "User Not Found",
		"no customer Bad Gateway: Not Found":              "no customer #: Not Found",
		"tenant=acme.eu-west url=https://a.b/c?d=e: bad":  "tenant=# url=#?d=#: bad",
		"reason=declined, error=timeout":                  "reason=declined, error=timeout",
		"a==b, a != b, code = Unavailable desc = EOF":     "a==b, a != b, code = Unavailable desc = EOF",
		"'a'-1 'b' 5'c'":                                  "''-# '' #'c'",
	} {
		if got := Mask(in); got != want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestMask_IsBounded(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		strings.Repeat("word ", 1<<20),
		strings.Repeat("7", 1<<20) + " x",
		strings.Repeat(`"`, 1<<20),
		strings.Repeat("'a", 1<<20),
		strings.Repeat("(", 1<<20),
		strings.Repeat("é", 1<<20),
	} {
		if n := len(Mask(s)); n > maxMasked {
			t.Errorf("Mask(%.10q…) has %d bytes, want at most %d", s, n, maxMasked)
		}
	}
}

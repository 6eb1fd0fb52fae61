package console

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve/api"
)

// A look at a letter costs at most 16 times its bytes and 4 MiB, in memory and in the page,
// whatever it contains, beyond what each page costs.
func FuzzLetter_CostsWhatItsBytesDo(f *testing.F) {
	cases.Skip(f) // and the race detector takes memory
	for _, unit := range []string{"[", `{"a":`, `"`, "<", "\x01", "\x7f", "\n", "a\n", "ä", "\u202e", "\xff", `{"a":1},`, `"\u0000",`, "<b>&amp;</b>", "0123456789", `[[[[[[[[1,2,3]]]]]]]],`} {
		for _, n := range []uint32{1, 24 << 10, 1 << 20} {
			f.Add(unit, n, "k", "v", uint16(0))
		}
	}
	f.Add("v", uint32(1), "", "", uint16(60_000))
	f.Add("v", uint32(1), "k", "v", uint16(60_000))
	f.Add("v", uint32(1), "\x01", strings.Repeat("\x01", 100), uint16(9000))
	f.Add("v", uint32(1), strings.Repeat(`"`, 5000), strings.Repeat(`<`, 5000), uint16(90))
	f.Fuzz(func(t *testing.T, unit string, n uint32, key, header string, headers uint16) {
		most := 1 << 20 // the API has no more of one part
		if unit == "" || len(key) > most || len(header) > most {
			t.Skip()
		}
		text := strings.Repeat(unit, min(int(n), most)/len(unit)+1)
		many := min(int(headers), 4*most/(len(key)+len(header)+1))
		values := []string{text}
		if closed := strings.Map(closing, unit); closed != "" { // nested
			values = append(values, text+"1"+strings.Repeat(closed, len(text)/len(unit)), "["+strings.TrimSuffix(text, ",")+"]")
		}
		for _, value := range values {
			l := letterOf(value, key, header, many)
			size := len(value) + many*(len(key)+len(header)+2)
			for _, as := range []string{"", asJSON, asText, asHex} {
				inBounds(t, fmt.Sprintf("%d bytes of %.20q, %d headers, as %q", size, value, many, as), size, func(l *api.LetterDetail) (string, any) {
					return "letter", newLetterModel(l, "orders.dlq", "/topics/orders.dlq", as, &Filter{}, time.Now())
				}, l)
			}
			inBounds(t, fmt.Sprintf("an edit of %d bytes of %.20q, %d headers", size, value, many), 2*size, func(l *api.LetterDetail) (string, any) {
				return "changes", changesOf(l.Content, letterOf("x\n"+value+"\nx", "x", "y", 1).Content)
			}, l)
		}
	})
}

// slack is what other goroutines allocate meanwhile, and what each page has of its own.
const slack = 512 << 10

// inBounds checks what a page of a letter of so many bytes takes.
func inBounds(t *testing.T, name string, size int, model func(*api.LetterDetail) (string, any), l *api.LetterDetail) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	page, err := execute(model(l))
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allowed := min(16*size, 4<<20)
	if memory := int(after.TotalAlloc - before.TotalAlloc); memory > allowed+slack || len(page) > allowed+slack/8 {
		t.Errorf("%s: %d bytes of memory, %d of a page", name, memory, len(page))
	}
}

// letterOf returns a letter with a value and so many headers.
func letterOf(value, key, header string, headers int) *api.LetterDetail {
	of := func(s string) api.Bytes {
		if utf8.ValidString(s) {
			return api.Bytes{Text: &s, Size: len(s)}
		}
		return api.Bytes{Base64: []byte(s), Size: len(s)}
	}
	l := &api.LetterDetail{Content: &api.Content{Key: of("k"), Value: of(value)}}
	for range headers {
		l.Content.Headers = append(l.Content.Headers, api.Header{Key: key, Value: of(header)})
	}
	return l
}

// closing returns what closes a bracket.
func closing(r rune) rune {
	switch r {
	case '[':
		return ']'
	case '{':
		return '}'
	}
	return -1
}

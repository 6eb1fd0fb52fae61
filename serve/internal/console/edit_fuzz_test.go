package console

import (
	"net/url"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/api"
)

// Whatever an operator types: the form that confirms an edit makes the same edit, as its page
// showed it; one that cannot be understood makes none.
func FuzzEditOf_IsConfirmedAsShown(f *testing.F) {
	f.Add("currency: EUR", "old", `{"n":7}`, "value", "", "value", false)
	f.Add("a: b\r\nc:d\n\n: x", "a\r\nb", "", "one\r\n2", "", "one\n2", false)
	f.Add("no header", "", "[1", "", "", "v", true)
	f.Add("a: b\r\r\n", "", "", "", "v\r\r\nw\rx", "v", true)
	f.Add("", " x ", " ", "\r", "\x00", "", true)
	f.Fuzz(func(t *testing.T, set, unset, patch, text, value, was string, replace bool) {
		if !utf8.ValidString(was) {
			t.Skip("the API has valid text only")
		}
		l := &api.LetterDetail{Content: &api.Content{Value: api.Bytes{Text: &was, Size: len(was)}}}
		q := url.Values{"set": {set}, "unset": {unset}, "patch": {patch}, "text": {text}, "value": {value}}
		if replace {
			q.Set("replace", "1")
		}
		e, m, fields, err := editOf(q, l)
		if err != nil {
			if len(fields) > 0 || m == nil {
				t.Errorf("an edit that is refused is confirmed by %v", fields)
			}
			return
		}
		confirmed := url.Values{}
		for _, is := range fields {
			confirmed.Add(is.Name, is.Value)
		}
		again, _, fieldsAgain, err := editOf(confirmed, l)
		if err != nil || !reflect.DeepEqual(again, e) || !reflect.DeepEqual(fieldsAgain, fields) {
			t.Errorf("%v is confirmed as %+v, %v; shown was %+v", q, again, err, e)
		}
	})
}

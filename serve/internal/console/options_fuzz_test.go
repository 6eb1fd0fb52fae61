package console

import (
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/number"
)

// Whatever an operator types: options are within their bounds, and the form that confirms them has
// the same; or they are refused with words.
func FuzzOptionsOf_AreConfirmedAsShown(f *testing.F) {
	for _, text := range []string{"", "none", "0", "50", "1e6", "2e6", "NaN", "Inf", "-1", "30s", "25h", "0.5ms", "9223372036854775807", " 7 ", "x"} {
		f.Add(text, "", "", "", "", "", "")
		f.Add("", text, "", "", text, text, "")
		f.Add("", "", text, text, "", "", text)
	}
	f.Fuzz(func(t *testing.T, rate, canary, ramp, window, tolerate, redrives, to string) {
		q := url.Values{"rate": {rate}, "canary": {canary}, "ramp": {ramp}, "window": {window}, "tolerate": {tolerate}, "redrives": {redrives}, "to": {to}}
		o, fields, all, err := optionsOf(q)
		if len(all) != len(runOptions) {
			t.Fatalf("the form has %d options", len(all))
		}
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%v is refused without words", q)
			}
			return
		}
		p := &o.Pace
		if !(p.Rate == -1 || p.Rate >= 0 && p.Rate <= 1e6) || p.Canary < -1 || p.Tolerate < -1 || o.MaxRedrives < -1 || p.RampMs < -1 || p.RampMs > 24*3600e3 || p.WindowMs < -1 || p.WindowMs > 24*3600e3 || len(o.Target.Topic) > 249 {
			t.Errorf("%v makes %+v", q, o)
		}
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("%v makes what cannot be sent: %v", q, err)
		}
		confirmed := url.Values{}
		for _, is := range fields {
			confirmed.Add(is.Name, is.Value)
		}
		if again, _, _, err := optionsOf(confirmed); err != nil || !reflect.DeepEqual(again, o) {
			t.Errorf("%v is confirmed as %+v, %v; shown was %+v", q, again, err, o)
		}
	})
}

// A number of letters is one from 1 on that a page can show, and is read as it is shown.
func FuzzExpected_IsReadAsShown(f *testing.F) {
	for _, text := range []string{"1", "1,902", " 7 ", "0", "-1", "", "2147483648", "1e3", ",,1", "+5", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := expected(text)
		if err != nil {
			if n != 0 {
				t.Errorf("%q is refused as %d", text, n)
			}
			return
		}
		if n < 1 || n > math.MaxInt32 {
			t.Errorf("%q is %d", text, n)
		}
		if again, err := expected(number.Format(n)); err != nil || again != n {
			t.Errorf("%q is %d, which is shown as %s and read as %d, %v", text, n, number.Format(n), again, err)
		}
	})
}

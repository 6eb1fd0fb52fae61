package console

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// An address shows the same to everybody: what is read from it is written back.
func TestFilter_IsWhatTheAddressSays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"":                        "",
		"class=&group=&since=":    "",
		"class=a&class=b&class=a": "?class=a&class=b",
		"since=6h&until=1h":       "?since=6h&until=1h",
		"since=2026-11-23T10:00:00Z&state=failed&x=y": "?since=2026-11-23T10%3A00%3A00Z&state=failed",
		"offset=0:119&offset=1:7&offset=0:119":        "?offset=0%3A119&offset=1%3A7",
		"class=%3Cb%3E&cursor=v1%2Fx":                 "?class=%3Cb%3E&cursor=v1%2Fx",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseFilter(q, now)
		if err != nil || f.query() != want {
			t.Errorf("%q is written as %q, %v, want %q", query, f.query(), err, want)
		}
	}
	for text, want := range map[string]time.Time{
		"6h": now.Add(-6 * time.Hour), "2d": now.Add(-48 * time.Hour), "2026-11-22": time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), "2026-11-22T10:30": time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC),
		"2026-11-22T10:30:00+02:00": time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC),
	} {
		if f, err := parseFilter(url.Values{"since": {text}}, now); err != nil || !f.Since.Equal(want) {
			t.Errorf("since %q is %v, %v, want %v", text, f.Since, err, want)
		}
	}
	f, err := parseFilter(url.Values{"class": {"a", "b"}, "since": {"6h"}, "state": {"all"}, "cursor": {"c"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	var without []string
	for _, c := range f.chips("/t") {
		without = append(without, c.Key+"="+c.Value+" "+c.Without)
	}
	if got, want := strings.Join(without, "; "), "class=a /t?class=b&since=6h&state=all; class=b /t?class=a&since=6h&state=all; state=all /t?class=a&class=b&since=6h; since=6h /t?class=a&class=b&state=all"; got != want {
		t.Errorf("the chips are %s, want %s", got, want)
	}
	f.Offsets = []string{"0:1", "0:2", "1:3", "1:4", "1:5"}
	if got, want := f.chips("/t")[2], (chip{"letters", "0/1, 0/2, 1/3 and 2 more", "/t?class=a&class=b&since=6h&state=all"}); got != want {
		t.Errorf("the chip of places is %+v, want %+v", got, want)
	}
	f.Offsets = nil
	zoomed := f.between(now.Add(-time.Hour), now)
	if got, want := zoomed.query(), "?class=a&class=b&since=2026-11-23T16%3A00%3A00Z&state=all&until=2026-11-23T17%3A00%3A00Z"; got != want {
		t.Errorf("a part of the time is %s, want %s", got, want)
	}
}

func FuzzFilter(f *testing.F) {
	for _, q := range []string{"", "since=6h", "since=9999999d&until=1", "class=%00&state=all", "since=0001-01-01&until=9999-12-31", "since=-1h"} {
		f.Add(q)
	}
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Skip()
		}
		one, err := parseFilter(q, now)
		if err != nil {
			return
		}
		again, err := url.ParseQuery(strings.TrimPrefix(one.query(), "?"))
		if err != nil {
			t.Fatal(err)
		}
		two, err := parseFilter(again, now)
		if err != nil || two.query() != one.query() || !two.Since.Equal(one.Since) {
			t.Errorf("%q becomes %q, %v", one.query(), two.query(), err)
		}
		w := windowOf(&one, time.Time{}, time.Time{}, now)
		if w.n < 1 || w.n > mostTimes || w.by <= 0 {
			t.Errorf("%q has the window %+v", query, w)
		}
	})
}

package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// stream answers each request with a text.
type stream string

// RoundTrip implements http.RoundTripper.
func (s stream) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {eventsType}}, Body: io.NopCloser(strings.NewReader(string(s)))}, nil
}

// followed returns the events of a stream, up to the first error.
func followed(t *testing.T, text string) (all []Event, err error) {
	t.Helper()
	c, err := New("http://localhost", "", &http.Client{Transport: stream(text)})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Follow(t.Context(), "orders.dlq", "r", "") {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Whatever a server sends, or a proxy makes of it: the client takes it without a panic, and what it
// takes for events is what a server sends for these.
func FuzzFollow_TakesItsOwnEvents(f *testing.F) {
	for _, text := range []string{
		"", "id: 1\nevent: run\ndata: {\"topic\":\"orders.dlq\",\"id\":\"r\",\"state\":\"done\"}\n\n", ": a comment\n\nid: 1\ndata: {}\n\nid: 2\ndata: {}\n", "data: {}\ndata: [1]\n\n", "data: {", "id\ndata\n\n",
		"id: 1\r\ndata: {\"counts\":{\"sent\":-1}}\r\n\r\n", "retry: 5\n", "data: null\n\n", "id: a\nid: b\ndata: {\"started\":\"2026-11-23T17:00:00Z\"}\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		events, err := followed(t, text)
		if err != nil && err.Error() == "" {
			t.Error("an error has no words")
		}
		var sent strings.Builder
		for _, e := range events {
			data, err := json.Marshal(e.Run)
			if err != nil {
				t.Skip("a time of the year 10,000")
			}
			fmt.Fprintf(&sent, "id: %s\nevent: run\ndata: %s\n\n", e.ID, data)
		}
		again, err := followed(t, sent.String())
		if err != nil || len(again) != len(events) {
			t.Fatalf("%q has %d events, which are sent as %q and taken for %d: %v", text, len(events), sent.String(), len(again), err)
		}
		for i := range again {
			a, _ := json.Marshal(again[i].Run)
			b, _ := json.Marshal(events[i].Run)
			if again[i].ID != events[i].ID || !reflect.DeepEqual(a, b) {
				t.Errorf("%q: event %d is %q %s, and then %q %s", text, i, events[i].ID, b, again[i].ID, a)
			}
		}
	})
}

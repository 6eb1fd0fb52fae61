package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
)

// Event is the state of a run at a moment.
type Event struct {
	// ID names the state, for a client that follows the run later on.
	ID  string
	Run api.Run
}

// mostLine bounds a line of a stream.
const mostLine = 1 << 20

// Follow yields the states of a run from now on, up to the last one. after is the id of the last
// event that the caller has; empty for none. The events end early, without an error, if the server
// ends: follow the run again, also at another server, with the id of the last event.
func (c *Client) Follow(ctx context.Context, topic, run, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		header := http.Header{}
		if after != "" {
			header["Last-Event-ID"] = []string{after}
		}
		answer, err := c.send(ctx, http.MethodGet, path("topics", topic, "runs", run, "events"), nil, nil, eventsType, header)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, mostLine)
		var e Event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.ID = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.Run); err != nil {
					yield(Event{}, fmt.Errorf("client: an event of run %s/%s: %w", topic, run, err))
					return
				}
				if !yield(e, nil) {
					return
				}
				e = Event{}
			}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, fmt.Errorf("client: following run %s/%s: %w", topic, run, err))
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Reopened are the letters of an archive that were settled at their old place, by what became of them: imported, they are open.
type reopened map[dlq.State]int64

func (r reopened) letters() (n int64) {
	for _, of := range r {
		n += of
	}
	return n
}

func (r reopened) String() string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, fmt.Sprintf("%d %s", r[state], state))
	}
	return strings.Join(parts, ", ")
}

// reopened looks what became of an archive's letters, where they are of the ledger's topic. A letter that the topic still holds is not
// counted: its copy shares its fate, unless siding did not write it. Of a file that is broken it counts what comes before: nothing of
// that will be imported.
func (t *tool) reopened(ctx context.Context, s *session, ledger *dlq.Ledger, file *os.File) (reopened, error) {
	bounds, err := dlq.Freeze(ctx, ledger.Topic(), s.opts...)
	if err != nil {
		return nil, onTopic("DESCRIBE", ledger.Topic(), err)
	}
	t.screen.Status("checking %s …", file.Name())
	defer t.screen.Status("")
	found := reopened{}
	for in := json.NewDecoder(file); ctx.Err() == nil; {
		var l struct {
			Topic     string
			Partition int32
			Offset    int64
			Headers   []struct{ Key string }
		}
		if err := in.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, rewind(file)
		}
		foreign := !slices.ContainsFunc(l.Headers, func(h struct{ Key string }) bool { return h.Key == headers.FailureReason })
		if state := ledger.State(l.Partition, l.Offset); l.Topic == ledger.Topic() && state.Settles() && (foreign || l.Offset < bounds.At[l.Partition]) {
			found[state]++
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return found, rewind(file)
}

func rewind(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

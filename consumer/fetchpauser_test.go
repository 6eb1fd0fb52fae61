package consumer

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unconnected is a client without a broker.
func unconnected(t *testing.T) *kgo.Client {
	t.Helper()
	cl, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// A worker that finds room and the poll loop that finds a feed full may call in either order: the
// last call counts.
func TestFetchPauser_FollowsTheFeedsLastState(t *testing.T) {
	t.Parallel()
	cl := unconnected(t)
	g := &fetchPauser{client: cl}
	f, other := &fetch{topic: "orders", partition: 3}, &fetch{topic: "orders.retry.5s", partition: 3}
	paused := func() map[string][]int32 { return cl.PauseFetchPartitions(nil) }
	want := func(when string, topics ...string) {
		t.Helper()
		m := map[string][]int32{}
		for _, topic := range topics {
			m[topic] = []int32{3}
		}
		if got := paused(); len(got) != len(m) || len(m) > 0 && !reflect.DeepEqual(got, m) {
			t.Errorf("%s: paused are %v, want %v", when, got, m)
		}
	}
	g.apply()
	g.apply(f, other)
	want("nothing is full")
	f.full.Store(true)
	g.apply(f, other)
	want("one is full", "orders")
	g.apply(f)
	want("applied twice", "orders")
	// Full, and room again, before either of the two calls is made.
	f.full.Store(false)
	other.full.Store(true)
	g.apply(f, other)
	want("the one has room and the other is full", "orders.retry.5s")
	other.full.Store(false)
	g.apply(other)
	g.apply(other)
	want("room everywhere")

	// A pause outlives the assignment in kgo. So a feed that is forgotten is resumed, and stays so.
	f.full.Store(true)
	g.apply(f)
	g.close(f)
	want("forgotten")
	g.apply(f)
	want("forgotten, and a late word of its worker")
	g.close(other)
	want("forgotten without a pause")
}

// Whichever goroutine comes last, the fetch ends paused if the feed is full.
func TestFetchPauser_EndsAsTheFeedIs(t *testing.T) {
	t.Parallel()
	cl := unconnected(t)
	g := &fetchPauser{client: cl}
	f := &fetch{topic: "orders"}
	for i := range 500 {
		var wg sync.WaitGroup
		for _, full := range []bool{true, false, i%2 == 0} {
			wg.Go(func() {
				f.full.Store(full)
				g.apply(f)
			})
		}
		wg.Wait()
		if got, want := len(cl.PauseFetchPartitions(nil)) > 0, f.full.Load(); got != want || f.paused != want {
			t.Fatalf("paused %v, noted as %v, and the feed is full: %v", got, f.paused, want)
		}
	}
}

// A feed that a poll's fetches fill twice is named twice in one call. It had room between its two
// checks. The pause of the second check was made before the resumption of the first: the feed was
// full, and its fetch went on.
func TestFetchPauser_FeedNamedTwiceEndsAsItIs(t *testing.T) {
	t.Parallel()
	cl := unconnected(t)
	g := &fetchPauser{client: cl}
	f := &fetch{topic: "orders"}
	for range 100 {
		var over atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for full := true; !over.Load(); full = !full {
				f.full.Store(full)
			}
		})
		g.apply(slices.Repeat([]*fetch{f}, 5000)...)
		over.Store(true)
		wg.Wait()
		if got := len(cl.PauseFetchPartitions(nil)) > 0; got != f.paused {
			t.Fatalf("paused %v, noted as %v", got, f.paused)
		}
	}
}

package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted returns a view that counts its renderings and shows its version.
func counted(key string, version *atomic.Uint64, renderings *atomic.Int64) *View {
	return &View{Key: key, Version: version.Load, Render: func(context.Context, time.Time) ([]byte, error) {
		renderings.Add(1)
		return fmt.Appendf(nil, "version %d", version.Load()), nil
	}}
}

// However many look at a view at once, it is rendered once for each change, and not more often than
// once a second.
func TestViews_RenderOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := NewViews()
		var version atomic.Uint64
		var renderings atomic.Int64
		look := func() {
			var viewers sync.WaitGroup
			for range 100 {
				viewers.Go(func() {
					if _, err := all.Get(t.Context(), counted("a", &version, &renderings)); err != nil {
						t.Error(err)
					}
				})
			}
			viewers.Wait()
		}
		look()
		if n := renderings.Load(); n != 1 {
			t.Errorf("100 viewers: %d renderings, want 1", n)
		}
		for range 50 {
			version.Add(1)
			look()
		}
		if n := renderings.Load(); n != 1 {
			t.Errorf("50 changes at once: %d renderings, want 1", n)
		}
		time.Sleep(restTime)
		look()
		time.Sleep(staleTime - time.Millisecond)
		look()
		if n := renderings.Load(); n != 2 {
			t.Errorf("at rest: %d renderings, want 2", n)
		}
		if got, _ := all.Get(t.Context(), counted("a", &version, &renderings)); string(got.HTML) != "version 50" {
			t.Errorf("the view shows %q", got.HTML)
		}
		time.Sleep(time.Millisecond)
		look()
		if n := renderings.Load(); n != 3 {
			t.Errorf("stale: %d renderings, want 3", n)
		}
	})
}

// Renderings that are kept have bounds, and a failure is not kept.
func TestViews_KeepFew(t *testing.T) {
	t.Parallel()
	all := NewViews()
	var version atomic.Uint64
	for i := range mostViews + 20 {
		v := &View{Key: fmt.Sprint(i), Version: version.Load, Render: func(context.Context, time.Time) ([]byte, error) { return make([]byte, 200<<10), nil }}
		if _, err := all.Get(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.kept) > mostViews || all.bytes > mostBytes || all.bytes < mostBytes/2 {
		t.Errorf("%d views with %d bytes are kept", len(all.kept), all.bytes)
	}
	boom := errors.New("boom")
	v := &View{Key: "x", Version: version.Load, Render: func(context.Context, time.Time) ([]byte, error) { return nil, boom }}
	if _, err := all.Get(t.Context(), v); !errors.Is(err, boom) {
		t.Errorf("the error is %v", err)
	}
	v.Render = func(context.Context, time.Time) ([]byte, error) { return []byte("good"), nil }
	if got, err := all.Get(t.Context(), v); err != nil || string(got.HTML) != "good" {
		t.Errorf("after an error: %q, %v", got.HTML, err)
	}
}

// What a sender types into an address never gives the key of what others may see.
func TestKeyOf_PartsStayApart(t *testing.T) {
	t.Parallel()
	keys := map[string][]string{}
	for _, parts := range [][]string{{"a", "b"}, {"ab"}, {"a", "", "b"}, {`a""b`}, {"a\x00b"}, {`a"`, `"b`}, {"a,b"}, {`a\`, "b"}} {
		key := KeyOf(parts...)
		if other, ok := keys[key]; ok {
			t.Errorf("%q and %q have one key", parts, other)
		}
		keys[key] = parts
	}
}

// How long ago something was is no news; when it was is.
func TestHashOf_TimeAloneIsNoNews(t *testing.T) {
	t.Parallel()
	const page = `<p>3 open</p><time datetime="2026-11-23T17:00:00Z" title="2026-11-23 17:00:00 UTC">4 s ago</time>`
	for changed, same := range map[string]bool{
		strings.Replace(page, "4 s ago", "1 h ago", 1):     true,
		strings.Replace(page, "3 open", "4 open", 1):       false,
		strings.Replace(page, "T17:00:00", "T17:00:01", 1): false,
	} {
		if got := hashOf([]byte(page)) == hashOf([]byte(changed)); got != same {
			t.Errorf("%s: the hash is the same: %v, want %v", changed, got, same)
		}
	}
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Many ask at once, and again and again: within a minute one request is sent, whether the answer is
// an error or not. A good answer is kept.
func TestCache_AsksOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, bad := range []error{nil, errors.New("no")} {
			c, asked := newCache[int](t.Context(), time.Now), atomic.Int32{}
			ask := func(context.Context) (int, error) {
				time.Sleep(time.Second)
				return int(asked.Add(1)), bad
			}
			for range 100 {
				go func() { _, _ = c.get(t.Context(), "x", ask) }()
			}
			synctest.Wait()
			for range 59 {
				if n, err := c.get(t.Context(), "x", ask); n != 1 || !errors.Is(err, bad) {
					t.Fatalf("%d, %v", n, err)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Second)
			want := 1
			if bad != nil {
				want = 2
			}
			if n, err := c.get(t.Context(), "x", ask); n != want || !errors.Is(err, bad) {
				t.Errorf("after a minute it is %d, %v, want %d", n, err, want)
			}
		}
	})
}

// Who asked first goes away. The others have their answer.
func TestCache_OutlivesWhoAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t.Context(), time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			return 7, ctx.Err()
		}
		go func() {
			if _, err := c.get(ctx, "x", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("who went away has %v", err)
			}
		}()
		synctest.Wait()
		cancel()
		if n, err := c.get(t.Context(), "x", ask); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// Letters with made-up ids neither fill the memory nor flood the registry.
func TestCache_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := newCache[int](t.Context(), time.Now), 0
		ask := func(context.Context) (int, error) { asked++; return 0, nil }
		for i := range mostKept {
			if _, err := c.get(t.Context(), fmt.Sprint(i), ask); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.get(t.Context(), "one more", ask); err == nil || !strings.Contains(err.Error(), "more than 1000") || asked != mostKept {
			t.Errorf("%v: %d were asked for", err, asked)
		}
		time.Sleep(askEvery)
		if _, err := c.get(t.Context(), "one more", ask); err != nil || len(c.kept) != mostKept {
			t.Errorf("%v: %d are kept", err, len(c.kept))
		}
	})
}

// What was not asked may be asked for as soon as the registry may.
func TestCache_ForgetsWhatWasNotAsked(t *testing.T) {
	t.Parallel()
	c, asked := newCache[int](t.Context(), time.Now), 0
	ask := func(context.Context) (int, error) {
		asked++
		return 0, fmt.Errorf("y, which it refers to: %w", &pausedError{errors.New("down")})
	}
	for range 2 {
		if _, err := c.get(t.Context(), "x", ask); err == nil {
			t.Error("no error")
		}
	}
	if asked != 2 {
		t.Errorf("it was asked for %d times", asked)
	}
}

func TestCache_KeepsAPanicAsAnError(t *testing.T) {
	t.Parallel()
	c := newCache[int](t.Context(), time.Now)
	for range 2 {
		if _, err := c.get(t.Context(), "x", func(context.Context) (int, error) { panic("no") }); err == nil {
			t.Error("no error")
		}
	}
}

package view

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// events is a browser that follows a stream.
type events struct {
	*httptest.ResponseRecorder
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
}

func (e *events) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ResponseRecorder.Write(b)
}

func (e *events) FlushError() error { return nil }

// live returns the data of the events so far.
func (e *events) live() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := bufio.NewScanner(strings.NewReader(e.Body.String()))
	var data []string
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		} else if lines.Text() == "" && data != nil {
			all, data = append(all, strings.Join(data, "\n")), nil
		}
	}
	return all
}

func follow(t *testing.T, s *Streams, v *View, seen string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &events{ResponseRecorder: httptest.NewRecorder(), cancel: cancel, done: make(chan struct{})}
	r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
	go func() {
		defer close(e.done)
		if err := s.Serve(e, r, v, nil, seen); err != nil {
			http.Error(e, err.Error(), http.StatusServiceUnavailable)
		}
	}()
	return e
}

// 100 browsers that follow a page cost one rendering a change; at rest they get nothing.
func TestStreams_SendAllWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := NewViews()
		s := NewStreams(all)
		var version atomic.Uint64
		var renderings atomic.Int64
		v := counted("a", &version, &renderings)
		first, err := all.Get(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		var browsers []*events
		for range 100 {
			browsers = append(browsers, follow(t, s, v, first.Hash))
		}
		time.Sleep(time.Minute)
		if n := renderings.Load(); n > 5 {
			t.Errorf("a minute at rest: %d renderings, want 5 at most", n)
		}
		before := renderings.Load()
		version.Add(1)
		time.Sleep(3 * time.Second)
		if n := renderings.Load() - before; n != 1 {
			t.Errorf("one change: %d renderings", n)
		}
		for _, e := range browsers {
			if got := e.live(); len(got) != 1 || got[0] != "version 1" {
				t.Fatalf("a browser has %q", got)
			}
			e.cancel()
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.feeds) != 0 || s.open != 0 {
			t.Errorf("when all are gone: %d feeds, %d streams", len(s.feeds), s.open)
		}
	})
}

// A stream has both parts of a page, and a browser that comes again gets the part that it lacks.
func TestStreams_HaveBothParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStreams(NewViews())
		var ofPage, ofRuns atomic.Uint64
		var renderings atomic.Int64
		page, cards := counted("page", &ofPage, &renderings), counted("cards", &ofRuns, &renderings)
		browse := func(seen string) *events {
			e := &events{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			e.cancel = cancel
			r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
			r.Header.Set("Last-Event-ID", seen)
			go func() {
				defer close(e.done)
				if err := s.Serve(e, r, page, cards, "old.old"); err != nil {
					t.Error(err)
				}
			}()
			return e
		}
		first := browse("")
		time.Sleep(5 * time.Second)
		ofRuns.Add(1)
		time.Sleep(5 * time.Second)
		if got := first.live(); len(got) != 3 || got[2] != "version 1" || strings.Count(first.Body.String(), "event: runs\n") != 2 {
			t.Errorf("the first browser has %q", got)
		}
		ids := strings.Split(first.Body.String(), "id: ")
		last, _, _ := strings.Cut(ids[len(ids)-1], "\n")
		first.cancel()
		ofPage.Add(1)
		again := browse(last)
		time.Sleep(5 * time.Second)
		if got := again.live(); len(got) != 1 || strings.Contains(again.Body.String(), "event: runs") {
			t.Errorf("with %q the browser gets %q", last, got)
		}
		again.cancel()
		synctest.Wait()
		if s.open != 0 {
			t.Errorf("%d streams are left", s.open)
		}
	})
}

// A browser that comes again gets what it missed, and streams end after some minutes, so that
// credentials are checked again.
func TestStreams_EndAndGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := NewViews()
		s := NewStreams(all)
		var version atomic.Uint64
		var renderings atomic.Int64
		v := counted("a", &version, &renderings)
		e := follow(t, s, v, "another")
		time.Sleep(time.Second)
		if got := e.live(); len(got) != 1 || got[0] != "version 0" {
			t.Errorf("a browser with an old page gets %q", got)
		}
		time.Sleep(streamTime)
		select {
		case <-e.done:
		default:
			t.Error("the stream goes on")
		}
		one, two := follow(t, s, v, ""), follow(t, s, counted("b", &version, &renderings), "")
		time.Sleep(time.Second)
		s.End()
		<-one.done
		<-two.done
		late := follow(t, s, v, "")
		<-late.done
		if late.Code != http.StatusServiceUnavailable {
			t.Errorf("after the end a stream is answered with %d", late.Code)
		}
	})
}

// A page that cannot be made any more ends its streams; the browsers ask again and get the reason.
func TestStreams_EndWithTheirPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStreams(NewViews())
		var gone atomic.Bool
		v := &View{Key: "a", Version: func() uint64 { return uint64(time.Now().Unix()) }, Render: func(context.Context, time.Time) ([]byte, error) {
			if gone.Load() {
				return nil, errors.New("there is no such page any more")
			}
			return []byte("here"), nil
		}}
		e := follow(t, s, v, "")
		time.Sleep(time.Second)
		gone.Store(true)
		time.Sleep(5 * time.Second)
		select {
		case <-e.done:
		default:
			t.Error("the stream goes on without its page")
			e.cancel()
		}
		if got := e.live(); len(got) != 1 || got[0] != "here" {
			t.Errorf("the browser has %q", got)
		}
		s.End()
	})
}

// Somebody who is not known any more gets no news: the stream ends before it says anything.
func TestStreams_SendNothingToTheUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStreams(NewViews())
		var version atomic.Uint64
		var renderings atomic.Int64
		var gone atomic.Bool
		r := httptest.NewRequest("GET", "/", nil)
		ann := &access.Identity{Name: "ann"}
		r = r.WithContext(access.Asking(t.Context(), r, ann, func(*http.Request) (*access.Identity, error) {
			if gone.Load() {
				return nil, access.ErrNobody
			}
			return ann, nil
		}))
		e := &events{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{})}
		go func() {
			defer close(e.done)
			if err := s.Serve(e, r, counted("a", &version, &renderings), nil, ""); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		gone.Store(true)
		version.Add(1)
		time.Sleep(2 * lookEvery)
		select {
		case <-e.done:
		default:
			t.Error("the stream goes on")
			s.End()
		}
		if got := e.live(); len(got) != 1 || got[0] != "version 0" {
			t.Errorf("the browser has %q", got)
		}
	})
}

// A rendering with any line ends stays one event.
func TestNewsOf_IsOneEvent(t *testing.T) {
	t.Parallel()
	got := string(newsOf(Rendering{HTML: []byte("a\n\nevent: x\r\rid: 7\nb"), Hash: "h"}).text)
	if want := "data: a\ndata: \ndata: event: x  id: 7\ndata: b\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

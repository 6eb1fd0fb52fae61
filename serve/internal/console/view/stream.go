package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/patient"
)

const (
	// lookEvery is how often the view of a stream is looked at.
	lookEvery = 2 * time.Second
	// beatEvery is how often a stream without news says that it is there.
	beatEvery = 25 * time.Second
	// streamTime is how long a stream lasts. Then the browser asks again, with its credentials.
	streamTime = 5 * time.Minute
	// mostFollowers bounds those that follow views; each page follows two. Further pages poll.
	mostFollowers = 2000
	// writeTime is how long a browser may take for an event.
	writeTime = 10 * time.Second
)

// errManyStreams refuses a stream.
var errManyStreams = errors.New("the server has too many streams; the page asks again from time to time")

// Streams sends views to those who look at them. One goroutine looks at a view, however many follow
// it. It is safe for concurrent use.
type Streams struct {
	views *Views

	mu      sync.Mutex
	feeds   map[string]*feed // by the views' keys
	open    int
	ended   bool
	running sync.WaitGroup
}

// feed is a view that browsers follow.
type feed struct {
	cancel    context.CancelFunc
	followers map[*follower]bool
	last      news
}

// follower is a stream that follows a view. news has the last event that was not sent; a slow
// browser misses those before.
type follower struct{ news chan news }

// news is a rendering as the data of an event. All followers send the same bytes.
type news struct {
	hash string // of the rendering
	text []byte
}

// NewStreams returns streams of views.
func NewStreams(v *Views) *Streams { return &Streams{views: v, feeds: map[string]*feed{}} }

// follow adds a follower of a view.
func (s *Streams) follow(v *View) (*follower, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.open >= mostFollowers {
		return nil, errManyStreams
	}
	s.open++
	f := s.feeds[v.Key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{cancel: cancel, followers: map[*follower]bool{}}
		s.feeds[v.Key] = f
		s.running.Go(func() { s.look(ctx, v, f) })
	}
	one := &follower{news: make(chan news, 1)}
	if f.last.text != nil {
		one.news <- f.last
	}
	f.followers[one] = true
	return one, nil
}

// leave removes a follower. The last one ends the feed.
func (s *Streams) leave(v *View, one *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if f := s.feeds[v.Key]; f != nil && f.followers[one] {
		if delete(f.followers, one); len(f.followers) == 0 {
			f.cancel()
			delete(s.feeds, v.Key)
		}
	}
}

// look sends the followers of a view what is new, until ctx ends. If the view cannot be rendered
// any more, their streams end: the browsers ask again, and get the reason.
func (s *Streams) look(ctx context.Context, v *View, f *feed) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := s.views.Get(ctx, v)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		switch {
		case s.feeds[v.Key] != f: // it was ended meanwhile
		case err != nil:
			for one := range f.followers {
				close(one.news)
			}
			delete(s.feeds, v.Key)
			f.cancel()
		case now.Hash != f.last.hash:
			f.last = newsOf(now)
			for one := range f.followers {
				select {
				case <-one.news: // it was not sent yet
				default:
				}
				one.news <- f.last
			}
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// End ends all streams, and waits for what looks at views. No stream begins any more.
func (s *Streams) End() {
	s.mu.Lock()
	s.ended = true
	for key, f := range s.feeds {
		f.cancel()
		for one := range f.followers {
			close(one.news)
		}
		delete(s.feeds, key)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Serve sends the parts of a page to a browser as they change, in events named live and runs with
// the HTML: its own view, and the cards of the runs that go on; nil without cards. seen has the
// hashes of what the browser has, with a dot between them. It ends before it says anything to
// a sender who is not known any more: the browser asks again, and gets the reason.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, page, cards *View, seen string) error {
	one, err := s.follow(page)
	if err != nil {
		return err
	}
	defer s.leave(page, one)
	var onRuns chan news
	if cards != nil {
		two, err := s.follow(cards)
		if err != nil {
			return err
		}
		defer s.leave(cards, two)
		onRuns = two.news
	}
	ofPage, ofRuns := seenBy(r, seen)
	// That of the server is for requests, not for answers.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	beat, last := time.NewTicker(beatEvery), time.NewTimer(streamTime)
	defer beat.Stop()
	defer last.Stop()
	out := patient.New(w, writeTime)
	defer out.End()
	if out.Send([]byte("retry: 3000\n\n")) != nil {
		return nil
	}
	for {
		var name string
		var now news
		ok, has := true, &ofPage
		select {
		case <-r.Context().Done():
			return nil
		case <-last.C:
			return nil
		case <-beat.C:
			if !access.Stays(r.Context()) || out.Send([]byte(": \n\n")) != nil {
				return nil
			}
			continue
		case now, ok = <-one.news:
			name = "live"
		case now, ok = <-onRuns:
			name, has = "runs", &ofRuns
		}
		if !ok || !access.Stays(r.Context()) {
			return nil
		}
		if now.hash == *has {
			continue
		}
		*has = now.hash
		if out.Send(fmt.Appendf(nil, "id: %s.%s\nevent: %s\n%s", ofPage, ofRuns, name, now.text)) != nil {
			return nil // the browser is gone
		}
	}
}

// seenBy returns the hashes of what a browser has: by the last event that it got, or by its page.
func seenBy(r *http.Request, seen string) (ofPage, ofRuns string) {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		seen = last
	}
	ofPage, ofRuns, _ = strings.Cut(seen, ".")
	if strings.Trim(ofPage+ofRuns, "0123456789abcdef") != "" {
		return "", "" // no hashes
	}
	return ofPage, ofRuns
}

// newsOf returns a rendering as the data of an event.
func newsOf(r Rendering) news {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.ReplaceAll(r.HTML, []byte{'\r'}, []byte{' '})) {
		b.WriteString("data: ")
		b.Write(bytes.TrimSuffix(line, []byte{'\n'}))
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		b.WriteString("data: \n") // an event without data is none
	}
	b.WriteByte('\n')
	return news{r.Hash, b.Bytes()}
}

package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// view is the part of a page that changes. Views of one key are the same for everybody, and are
// rendered once for all.
type view struct {
	key string
	// version is another number when what the view shows has changed. It costs next to nothing.
	version func() uint64
	// render returns the HTML.
	render func(ctx context.Context, now time.Time) ([]byte, error)
	// reads tells that a rendering asks the brokers, which may take long.
	reads bool
}

// reading returns the view as one whose rendering asks the brokers.
func (v view) reading() view {
	v.reads = true
	return v
}

const (
	// restTime is the shortest time between two renderings of a view, and staleTime the longest for
	// which one counts though nothing changed: it says how long ago things were.
	restTime  = time.Second
	staleTime = 15 * time.Second
	// renderTime bounds one rendering, and rendersAtOnce those of all views.
	renderTime    = 15 * time.Second
	rendersAtOnce = 2
	// mostViews and mostBytes bound the renderings that are kept.
	mostViews = 256
	mostBytes = 16 << 20
)

// rendering is a view as it was rendered last.
type rendering struct {
	html []byte
	hash string // see hashOf
	at   time.Time

	version uint64
	acts    uint64 // see views
}

// views keeps renderings. It is safe for concurrent use.
type views struct {
	renders chan struct{} // has a place for each rendering under way
	reads   chan struct{} // the same, for those that ask the brokers: they hold up no others
	// acts counts what people did over the console: they see it on the next page.
	acts atomic.Uint64

	mu    sync.Mutex
	kept  map[string]*keptView
	bytes int
}

// keptView is a view of which there is a rendering, or is one under way.
type keptView struct {
	turn chan struct{} // has one element while nobody renders

	used  time.Time // guarded by views.mu
	bytes int       // guarded by views.mu

	rendering // guarded by turn
}

func newViews() *views {
	return &views{renders: make(chan struct{}, rendersAtOnce), reads: make(chan struct{}, rendersAtOnce), kept: map[string]*keptView{}}
}

// get returns a rendering of a view that is as good as a new one: nothing has changed since, or it
// is younger than restTime.
func (all *views) get(ctx context.Context, v *view) (rendering, error) {
	kept := all.keep(v.key)
	select {
	case <-ctx.Done():
		return rendering{}, ctx.Err()
	case <-kept.turn:
	}
	defer func() { kept.turn <- struct{}{} }()
	now, version, acts := time.Now(), v.version(), all.acts.Load()
	if age := now.Sub(kept.at); kept.html != nil && kept.acts == acts && (age < restTime || age < staleTime && version == kept.version) {
		return kept.rendering, nil
	}
	places := all.renders
	if v.reads {
		places = all.reads
	}
	select {
	case <-ctx.Done():
		return rendering{}, ctx.Err()
	case places <- struct{}{}:
	}
	defer func() { <-places }()
	// Others wait for this rendering, too: it does not end with the request that began it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renderTime)
	defer cancel()
	html, err := v.render(ctx, now)
	if err != nil {
		kept.html = nil
		return rendering{}, err
	}
	kept.rendering = rendering{html: html, hash: hashOf(html), at: now, version: version, acts: acts}
	all.weigh(v.key, kept, len(html))
	return kept.rendering, nil
}

// ago matches what a page says of a time in relation to now.
var ago = regexp.MustCompile(`(<time [^>]*>)[^<]*</time>`)

// hashOf returns a hash of what a rendering says. Browsers themselves keep up how long ago things
// were, so that is no part of it: a page at rest is not sent again.
func hashOf(html []byte) string {
	sum := sha256.Sum256(ago.ReplaceAll(html, []byte("$1")))
	return hex.EncodeToString(sum[:8])
}

// keep returns the place of a view's rendering. If there are many, the one that was used the
// longest ago is dropped.
func (all *views) keep(key string) *keptView {
	all.mu.Lock()
	defer all.mu.Unlock()
	v := all.kept[key]
	if v == nil {
		for len(all.kept) >= mostViews {
			all.drop()
		}
		v = &keptView{turn: make(chan struct{}, 1)}
		v.turn <- struct{}{}
		all.kept[key] = v
	}
	v.used = time.Now()
	return v
}

// weigh counts the bytes of a rendering, and drops others if there are too many.
func (all *views) weigh(key string, v *keptView, n int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.kept[key] != v {
		return // it was dropped meanwhile
	}
	all.bytes += n - v.bytes
	v.bytes = n
	for all.bytes > mostBytes && len(all.kept) > 0 {
		all.drop()
	}
}

// drop forgets the view that was used the longest ago. The caller holds the lock.
func (all *views) drop() {
	var oldest string
	var at time.Time
	for key, v := range all.kept {
		if at.IsZero() || v.used.Before(at) {
			oldest, at = key, v.used
		}
	}
	all.bytes -= all.kept[oldest].bytes
	delete(all.kept, oldest)
}

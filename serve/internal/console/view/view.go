package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// View is the part of a page that changes. Views of one key are the same for everybody, and are
// rendered once for all.
type View struct {
	Key string // see [KeyOf]
	// Version is another number when what the view shows has changed. It costs next to nothing.
	Version func() uint64
	// Render returns the HTML.
	Render func(ctx context.Context, now time.Time) ([]byte, error)
	// Reads reports that a rendering asks the brokers, which may take long.
	Reads bool
}

// Reading returns the view as one whose rendering asks the brokers.
func (v View) Reading() View {
	v.Reads = true
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

// Rendering is a view as it was rendered last.
type Rendering struct {
	HTML []byte
	Hash string // of what the HTML says; empty if no browser follows it
	At   time.Time

	version uint64
	acts    uint64 // see views
}

// Views keeps renderings. It is safe for concurrent use.
type Views struct {
	renders chan struct{} // has a place for each rendering under way
	reads   chan struct{} // the same, for those that ask the brokers: they hold up no others
	acts    atomic.Uint64 // what people did over the console

	mu    sync.Mutex
	kept  map[string]*keptView
	bytes int
}

// keptView is a view of which there is a rendering, or is one under way.
type keptView struct {
	turn chan struct{} // has one element while no rendering goes on

	used  time.Time // guarded by views.mu
	bytes int       // guarded by views.mu

	Rendering // guarded by turn
}

// NewViews returns no renderings yet.
func NewViews() *Views {
	return &Views{renders: make(chan struct{}, rendersAtOnce), reads: make(chan struct{}, rendersAtOnce), kept: map[string]*keptView{}}
}

// Acted has all views be rendered anew: people see what they did on the next page.
func (all *Views) Acted() { all.acts.Add(1) }

// Get returns a rendering of a view that is as good as a new one: nothing has changed since, or it
// is younger than restTime.
func (all *Views) Get(ctx context.Context, v *View) (Rendering, error) {
	kept := all.keep(v.Key)
	select {
	case <-ctx.Done():
		return Rendering{}, ctx.Err()
	case <-kept.turn:
	}
	defer func() { kept.turn <- struct{}{} }()
	now, version, acts := time.Now(), v.Version(), all.acts.Load()
	if age := now.Sub(kept.At); kept.HTML != nil && kept.acts == acts && (age < restTime || age < staleTime && version == kept.version) {
		return kept.Rendering, nil
	}
	places := all.renders
	if v.Reads {
		places = all.reads
	}
	select {
	case <-ctx.Done():
		return Rendering{}, ctx.Err()
	case places <- struct{}{}:
	}
	defer func() { <-places }()
	// Others wait for this rendering, too: it does not end with the request that began it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renderTime)
	defer cancel()
	html, err := v.Render(ctx, now)
	if err != nil {
		kept.HTML = nil
		return Rendering{}, err
	}
	kept.Rendering = Rendering{HTML: html, Hash: hashOf(html), At: now, version: version, acts: acts}
	all.weigh(v.Key, kept, len(html))
	return kept.Rendering, nil
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
func (all *Views) keep(key string) *keptView {
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
func (all *Views) weigh(key string, v *keptView, n int) {
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
func (all *Views) drop() {
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

// KeyOf returns the key of a view. Other parts give another key, whatever the parts contain: two
// people who may see different things never share a view.
func KeyOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strconv.Quote(p))
	}
	return b.String()
}

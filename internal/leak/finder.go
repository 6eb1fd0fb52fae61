package leak

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
)

// markLength is the number of letters of a mark; 10 have 50 random bits. A short one also survives
// where a long text is cut.
const markLength = 10

// maxFound bounds what a finder keeps: one leak may be in each line of a log.
const maxFound = 20

// A Finder looks for one mark. Make it by [New].
type Finder struct {
	mark string
	// folded are the spellings of the mark that are found in lower case, the others as they are.
	folded, exact []string

	mu    sync.Mutex
	found []string
	more  int
	shown map[string]int
}

// New returns a finder with a mark of its own.
func New() *Finder { return Of(rand.Text()[:markLength]) }

// Of returns a finder with the mark of another one, which may be in another process: what
// [Finder.Mark] returns for no label.
func Of(mark string) *Finder {
	f := &Finder{mark: mark, shown: map[string]int{}}
	decimal := strings.Trim(fmt.Sprintf("%d", []byte(f.mark)), "[]")
	f.folded = []string{
		strings.ToLower(f.mark), hex.EncodeToString([]byte(f.mark)),
		decimal, strings.ReplaceAll(decimal, " ", ","), // as %v and JSON print bytes
	}
	for before := range 3 { // base64 has three bytes in four letters, wherever the mark begins
		padded := strings.Repeat("x", before) + f.mark
		text := base64.StdEncoding.EncodeToString([]byte(padded[:len(padded)/3*3]))[(before*8+5)/6:]
		f.exact = append(f.exact, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
	}
	return f
}

// Mark returns the mark with a label, such as the part of the record that it is for. What is found
// shows the label.
func (f *Finder) Mark(label string) string { return f.mark + label }

// Show looks for the mark in a text, also in hexadecimal, in base64 and as a list of numbers. kind
// is what the text is part of; [Finder.Shown] counts by it.
func (f *Finder) Show(kind, text string) {
	lower := strings.ToLower(text)
	at := -1
	for _, s := range f.folded {
		at = max(at, strings.Index(lower, s))
	}
	for _, s := range f.exact {
		at = max(at, strings.Index(text, s))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown[kind]++
	switch {
	case at < 0:
	case len(f.found) == maxFound:
		f.more++
	default:
		f.found = append(f.found, fmt.Sprintf("%s: …%s", kind, text[max(0, at-200):min(len(text), at+200)]))
	}
}

// Shown returns how many texts of a kind were shown. Where there are none, nothing was looked at.
// The finder's own kinds are "log", "span" and "metric".
func (f *Finder) Shown(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown[kind]
}

// Found returns where the mark was found, with the text around it: at most 20 places, and how many
// more there are.
func (f *Finder) Found() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := append([]string(nil), f.found...)
	if f.more > 0 {
		found = append(found, fmt.Sprintf("and %d more", f.more))
	}
	return found
}

// Logger returns a logger that shows the finder each line of any level, as text and as JSON: the
// two print some values differently.
func (f *Finder) Logger() *slog.Logger { return slog.New(f.Handler()) }

// Handler is the handler of [Finder.Logger], for a program that has a log of its own besides.
func (f *Finder) Handler() slog.Handler {
	all := &slog.HandlerOptions{AddSource: true, Level: slog.Level(math.MinInt)}
	return slog.NewMultiHandler(slog.NewTextHandler(lines{f}, all), slog.NewJSONHandler(lines{f}, all))
}

// lines shows what is written to it.
type lines struct{ to *Finder }

func (l lines) Write(line []byte) (int, error) {
	l.to.Show("log", string(line))
	return len(line), nil
}

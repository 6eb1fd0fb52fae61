package leak

import (
	"log/slog"
	"math"
)

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

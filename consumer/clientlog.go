package consumer

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// clientLog passes on kgo's warnings, and its other messages if the logger accepts debug messages.
// A client that cannot reach a broker logs that several times a second. Of equal messages about one
// broker, from all clients, the first passes, then one in ten seconds with their number; each of
// the others becomes a debug message. kgo.WithLogger in Config.Kafka replaces clientLog.
type clientLog struct {
	*kslog.Logger
	warnings *clientWarnings
}

type clientWarnings = logthrottle.Storms[clientWarning, []any]

// clientWarning is a message of kgo about a broker, if it names one.
type clientWarning struct {
	level           kgo.LogLevel
	message, broker string
}

func newClientWarnings(log *slog.Logger) *clientWarnings {
	client := kslog.New(log)
	return &clientWarnings{
		Report: func(w clientWarning, t logthrottle.Tally[[]any]) {
			about := slices.Clip(t.Last)
			switch {
			case t.Over():
				log.Info("siding: a client's warning has ended", "warning", w.message, "broker", w.broker, "total", t.Total, "lasted", t.Lasted)
				return
			case !t.First():
				about = append(about, "lines", t.Events, "total", t.Total, "lasted", t.Lasted)
			}
			client.Log(w.level, w.message, about...)
		},
		Rest: func(w clientWarning) clientWarning { // kgo's messages are few
			w.broker = ""
			return w
		},
	}
}

func (l clientLog) Level() kgo.LogLevel {
	if level := l.Logger.Level(); level != kgo.LogLevelInfo {
		return level
	}
	return kgo.LogLevelWarn
}

// Log implements kgo.Logger.
func (l clientLog) Log(level kgo.LogLevel, message string, about ...any) {
	if level != kgo.LogLevelWarn && level != kgo.LogLevelError {
		l.Logger.Log(level, message, about...)
		return
	}
	if !l.warnings.Add(time.Now(), &clientWarning{level, message, aboutBroker(about)}, &about) {
		l.Logger.Log(kgo.LogLevelDebug, message, about...)
	}
}

// aboutBroker returns the broker that a message of kgo names, if any.
func aboutBroker(about []any) string {
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "broker" {
			return fmt.Sprint(about[i+1])
		}
	}
	return ""
}

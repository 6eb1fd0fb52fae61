package consumer

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// clientLog passes on kgo's warnings, and its other messages if the logger accepts debug messages.
// A client that cannot reach a broker logs that several times a second. Of equal messages about one
// broker, from all clients, one in ten seconds passes, with their number; the others become debug
// messages. kgo.WithLogger in Config.Kafka replaces clientLog.
type clientLog struct {
	*kslog.Logger
	quiet *logthrottle.Throttle
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
	times, due := l.quiet.Due([]byte("client "+message+aboutBroker(about)), logthrottle.Every)
	switch {
	case !due:
		level = kgo.LogLevelDebug
	case times > 1:
		about = append(slices.Clip(about), "lines", times)
	}
	l.Logger.Log(level, message, about...)
}

// aboutBroker returns the broker that a message of kgo names, if any.
func aboutBroker(about []any) string {
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "broker" {
			return fmt.Sprint(" ", about[i+1])
		}
	}
	return ""
}

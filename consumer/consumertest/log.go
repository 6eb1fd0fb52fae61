package consumertest

import (
	"log/slog"
	"testing"
)

// logger writes to the test's log, which is shown if the test fails.
func logger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

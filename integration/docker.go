package integration

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// requireDocker skips tb if no Docker Engine answers; in CI it fails tb.
func requireDocker(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	if err := pingDocker(ctx); err != nil {
		withoutDocker(tb, err)
	}
}

// withoutDocker ends tb because of err. A suite that is skipped everywhere proves nothing, so CI
// must not skip it.
func withoutDocker(tb testing.TB, err error) {
	tb.Helper()
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		tb.Fatalf("real Kafka needs a Docker Engine, and CI must not skip: %v", err)
	} else {
		tb.Skipf("real Kafka needs a Docker Engine, and none answers: %v", err)
	}
}

func pingDocker(ctx context.Context) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	return provider.Health(ctx)
}

// daemonHost returns the host on which the Engine publishes ports.
func daemonHost(ctx context.Context) (string, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	return provider.DaemonHost(ctx)
}

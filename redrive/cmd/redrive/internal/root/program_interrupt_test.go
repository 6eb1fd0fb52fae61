package root_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestRun_AnInterruptEndsAVerbWithItsCode(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	begun := make(chan struct{})
	go func() {
		if conn, err := mute.Accept(); err == nil {
			close(begun)
			_, _ = conn.Read(make([]byte, 1<<10)) // what it asks
			_, _ = conn.Read(make([]byte, 1))     // until it hangs up
			conn.Close()
		}
	}()
	var stderr strings.Builder
	cmd := roottest.Command(t.Context(), "topics", "--brokers", mute.Addr().String(), "--timeout", "1m")
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	err = cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != cli.ExitError || time.Since(asked) > 50*time.Second {
		t.Errorf("it ended by %v after %s, want exit code %d at once", err, time.Since(asked), cli.ExitError)
	}
	if want := "\nstopping; once more ends at once\nredrive: interrupted\n"; stderr.String() != want {
		t.Errorf("stderr = %q, want %q", stderr.String(), want)
	}
}

package roottest

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root"
)

// Result is the output of a command and its exit code.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Invocation is how a command is started.
type Invocation struct {
	Env    map[string]string
	Dial   func(ctx context.Context, network, host string) (net.Conn, error) // nil is TCP
	Listen func(network, address string) (net.Listener, error)               // of the demo's broker
	Stdin  string
	Typed  func() // before stdin is read
	Now    func() time.Time
	Watch  func(words string) // each text on stderr
	Folder string             // of configuration
	Full   bool               // stdout takes nothing
}

// Run runs a command.
func (i Invocation) Run(t *testing.T, args ...string) Result {
	t.Helper()
	return i.In(t.Context(), t, args...)
}

// In runs a command that the context can end.
func (i Invocation) In(ctx context.Context, t *testing.T, args ...string) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if i.Now == nil {
		i.Now = func() time.Time { return clitest.Noon }
	}
	p := cli.Process{
		Stdin: typist{strings.NewReader(i.Stdin), i.Typed}, Stdout: &stdout, Stderr: watched{&stderr, i.Watch},
		Env:    connect.Environment{Getenv: func(k string) string { return i.Env[k] }, Folder: i.Folder, Dial: i.Dial},
		Listen: i.Listen, Now: i.Now, User: "oncall",
	}
	if i.Full {
		p.Stdout = fullDisk{}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	code := root.Run(ctx, p, args)
	return Result{stdout.String(), stderr.String(), code}
}

// fullDisk is a file on a disk without space.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// watched calls watch with each text that is written.
type watched struct {
	io.Writer
	watch func(string)
}

func (w watched) Write(p []byte) (int, error) {
	if w.watch != nil {
		w.watch(string(p))
	}
	return w.Writer.Write(p)
}

// typist calls before when the command reads the operator's answer.
type typist struct {
	io.Reader
	before func()
}

func (t typist) Read(p []byte) (int, error) {
	if t.before != nil {
		t.before()
	}
	return t.Reader.Read(p)
}

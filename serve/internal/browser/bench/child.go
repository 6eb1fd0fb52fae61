package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve"
)

// childBrokers is the variable that makes this program a server.
const childBrokers = "SIDING_BENCH_BROKERS"

// serveChild runs a server until its input ends, as it does with the parent. It prints its address.
func serveChild() error {
	s, err := serve.New(serve.Config{Kafka: []kgo.Opt{kgo.SeedBrokers(os.Getenv(childBrokers))}, Listen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	l, err := s.Listen()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return s.Serve(ctx, l)
}

// child is a server in a process of its own.
type child struct {
	cmd     *exec.Cmd
	input   io.WriteCloser
	address string
}

func startChild(brokers string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(exe)}
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), childBrokers+"="+brokers), os.Stderr
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.end()
		return nil, fmt.Errorf("the server did not begin: %w", err)
	}
	c.address = "http://" + strings.TrimSpace(line)
	return c, nil
}

func (c *child) end() {
	_ = c.input.Close()
	_ = c.cmd.Wait()
}

func (c *child) proc(name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, name))
	return string(text), err
}

// resident returns what the process has in memory, and the most that it ever had, in MiB.
func (c *child) resident() (now, most float64, err error) {
	text, err := c.proc("status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 && (fields[0] == "VmRSS:" || fields[0] == "VmHWM:") {
			n, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, 0, err
			}
			if fields[0] == "VmRSS:" {
				now = n / 1024
			} else {
				most = n / 1024
			}
		}
	}
	return now, most, nil
}

// cpu returns the time of a processor that the process has used up.
func (c *child) cpu() (time.Duration, error) {
	text, err := c.proc("stat")
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(text, ") ") // the program's name
	fields := strings.Fields(behind)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc has %q", text)
	}
	var ticks int64
	for _, field := range fields[11:13] { // of the process, and of the kernel for it
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // a tick, on all of Go's platforms
}

package integration_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the redrive binary of this working tree. The first test that needs it builds it, of
// what is compiled for the tests. The go command links it again only if it changed.
var program = sync.OnceValues(func() (string, error) {
	name, err := filepath.Abs(filepath.Join("..", ".cache", "integration", "redrive"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", name, ".")
	cmd.Dir = filepath.Join("..", "redrive", "cmd", "redrive")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build redrive: %w\n%s", err, out)
	}
	return name, nil
})

func binary(t *testing.T) string {
	t.Helper()
	name, err := program()
	must(t, err)
	return name
}

// process is a running redrive program.
type process struct {
	*exec.Cmd
	t      *testing.T
	stdout bytes.Buffer
	exited chan struct{}
	code   int // valid when exited is closed; -1: by a signal

	mu      sync.Mutex
	stderr  strings.Builder
	changed chan struct{}
}

// begin starts the program, without the configuration of this machine.
func (s *site) begin(args ...string) *process {
	s.t.Helper()
	p := &process{Cmd: exec.Command(binary(s.t), args...), t: s.t, exited: make(chan struct{}), changed: make(chan struct{})}
	p.Env = append([]string{"HOME=" + s.t.TempDir()}, s.settings...)
	if s.brokers != "" {
		p.Env = append(p.Env, "SIDING_BROKERS="+s.brokers)
	}
	p.Stdout = &p.stdout
	words, err := p.StderrPipe()
	if err == nil {
		err = p.Start()
	}
	must(s.t, err)
	go func() {
		defer close(p.exited)
		for lines := bufio.NewScanner(words); lines.Scan(); {
			p.mu.Lock()
			p.stderr.WriteString(lines.Text() + "\n")
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}
		_ = p.Wait()
		p.code = p.ProcessState.ExitCode()
	}()
	s.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.exited
	})
	return p
}

// output returns the output so far.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// prints waits until the output has one of these texts; it fails if the program ends before.
func (p *process) prints(any ...string) bool {
	p.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		p.mu.Lock()
		text, changed := p.stderr.String(), p.changed
		p.mu.Unlock()
		for _, words := range any {
			if strings.Contains(text, words) {
				return true
			}
		}
		select {
		case <-changed:
		case <-p.exited:
			if p.output() == text {
				return false
			}
		case <-deadline:
			p.t.Fatalf("%s does not print %q, but\n%s", p, any, text)
		}
	}
}

// end waits for the program's end and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(3 * time.Minute):
		p.t.Fatalf("%s does not end, and prints\n%s", p, p.output())
	}
	return p.code
}

// ends is end with the wanted exit code.
func (p *process) ends(code int) *process {
	p.t.Helper()
	if got := p.end(); got != code {
		p.t.Fatalf("%s ended with code %d, want %d, and prints\n%s", p, got, code, p.output())
	}
	return p
}

func (p *process) String() string {
	return strings.Join(append([]string{"redrive"}, p.Args[1:]...), " ")
}

// row is an object that the program prints.
type row map[string]any

func (r row) number(key string) int64 {
	n, _ := r[key].(float64)
	return int64(n)
}

func (r row) text(key string) string {
	s, _ := r[key].(string)
	return s
}

// rows runs a verb that prints data, and parses its output.
func (s *site) rows(args ...string) (all []row) {
	s.t.Helper()
	p := s.begin(append(args, "-o", "jsonl")...).ends(0)
	for d := json.NewDecoder(&p.stdout); ; {
		var r row
		if err := d.Decode(&r); err != nil {
			if msg := new(json.SyntaxError); errors.As(err, &msg) {
				s.t.Fatalf("%s prints what is no JSON: %v", p, err)
			}
			return all
		}
		all = append(all, r)
	}
}

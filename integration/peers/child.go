package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// childFlag makes the command do one job from its standard input instead.
const childFlag = "-child"

// lines are what a child writes: one when it is ready for what is offered, and then its report.
type lines struct{ *bufio.Reader }

// line waits for the next line.
func (l lines) line() (string, error) {
	line, err := l.ReadString('\n')
	return strings.TrimSpace(line), err
}

// report waits for the report.
func (l lines) report() (rep work.Report, err error) {
	line, err := l.line()
	if err != nil {
		return rep, err
	}
	err = json.Unmarshal([]byte(line), &rep)
	return rep, err
}

// A process is a child that does a job.
type process struct {
	name  string
	cmd   *exec.Cmd
	out   lines
	words bytes.Buffer // what it says about errors
}

// start starts a copy of this program. The child's standard input stays open: its end shows the
// child that the parent is gone.
func start(ctx context.Context, j work.Job) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: j.Program, cmd: exec.CommandContext(ctx, exe, childFlag)}
	p.cmd.Stderr = &p.words
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = lines{bufio.NewReader(out)}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return nil, p.failed(err)
	}
	return p, nil
}

// line waits for the child's next line.
func (p *process) line() (string, error) {
	line, err := p.out.line()
	if err != nil {
		return "", p.failed(err)
	}
	return line, nil
}

// report waits for the child's report, and for its end.
func (p *process) report() (rep work.Report, err error) {
	if rep, err = p.out.report(); err != nil {
		return rep, p.failed(err)
	}
	if err := p.cmd.Wait(); err != nil {
		return rep, p.why(err)
	}
	return rep, nil
}

// failed ends the child, and says what was wrong.
func (p *process) failed(err error) error {
	_ = p.cmd.Process.Kill() // it may have ended
	return p.why(errors.Join(err, p.cmd.Wait()))
}

// why adds the last that the child said.
func (p *process) why(err error) error {
	words := strings.Split(strings.TrimSpace(p.words.String()), "\n")
	return fmt.Errorf("%s: %w: %s", p.name, err, words[len(words)-1])
}

// stop ends a child that has no end of its own.
func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it reports the kill, which is expected
}

// child is the other end of start.
func child(stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var j work.Job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		fmt.Fprintln(stderr, "reading the job:", err)
		return exitFailed
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // until the parent closes it or is gone
		cancel()
	}()
	do := trial
	if j.Program == brokerProgram {
		do = broker
	}
	if err := do(ctx, j, stdout); err != nil {
		fmt.Fprintln(stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
		return exitFailed
	}
	return exitOK
}

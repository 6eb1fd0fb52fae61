package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// roleEnv names the role of a process that a run started.
const roleEnv = "SIDING_CHAOS_ROLE"

const (
	roleMember = "member"
	roleBroker = "broker"
)

// Child must be the first call of a program that calls [Run], as [Main] does it: in a process that
// a run has started, it does that process's work and never returns. Elsewhere it returns at once.
// The Config must be the one that Run gets; it provides what cannot be handed to a process, such as
// the handler.
func Child(cfg Config) {
	role := os.Getenv(roleEnv)
	if role == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		os.Exit(exitFailed) // the run is gone
	}
	switch role {
	case roleMember:
		var j trace.Job
		if err = json.Unmarshal(line, &j); err == nil {
			go func() {
				_, _ = io.Copy(io.Discard, in)
				os.Exit(exitFailed) // nobody is left to end it
			}()
			err = runMember(cfg.withDefaults(), j)
		}
	case roleBroker:
		var j brokerJob
		if err = json.Unmarshal(line, &j); err == nil {
			err = runBroker(j, in, os.Stdout)
		}
	default:
		err = fmt.Errorf("%s is %q", roleEnv, role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %s: %v\n", role, err)
		os.Exit(exitFailed)
	}
	os.Exit(exitOK)
}

// process is a child.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser // stays open: its end shows the child that the run is gone
	out    *bufio.Reader
	exited chan struct{}
	err    error // once exited
}

// startProcess starts a copy of this program in a role. What it writes to its standard error goes
// to a file.
func startProcess(role string, job any, stderr string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words, err := os.OpenFile(filepath.Clean(stderr), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer words.Close()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = words
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own: Wait would close that of StdoutPipe before all of it is read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out), exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	line, err := json.Marshal(job)
	if err == nil {
		_, err = in.Write(append(line, '\n'))
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process at once, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Package child starts copies of the running program in roles, such as that of a consumer, and does
// the work of a role in the copies.
package child

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
)

// env names the role of a process that a run started.
const env = "SIDING_CHAOS_ROLE"

// exitFailed is the exit code of a child that could not do its work, or whose run is gone.
const exitFailed = 2

// Role is the work of a child. It gets what Start was given, as JSON, and what else comes from its
// parent. That ends with the parent.
type Role func(job []byte, in *bufio.Reader) error

// Serve does the work of the process's role and never returns. In a process that has none, it
// returns at once.
func Serve(roles map[string]Role) {
	name := os.Getenv(env)
	if name == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		os.Exit(exitFailed) // the run is gone
	}
	if role := roles[name]; role != nil {
		err = role(line, in)
	} else {
		err = fmt.Errorf("%s is %q", env, name)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %s: %v\n", name, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// EndWithParent ends the process when its parent is gone, which would have ended it.
func EndWithParent(in *bufio.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(exitFailed)
}

// Process is a child.
type Process struct {
	In     io.WriteCloser // stays open: its end shows the child that the run is gone
	Out    *bufio.Reader
	Exited chan struct{}
	Err    error // once it exited

	cmd *exec.Cmd
}

// Start starts a copy of this program in a role, and gives it a job. What it writes to its standard
// error goes to a file.
func Start(role string, job any, stderr string) (*Process, error) {
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
	cmd.Env = append(os.Environ(), env+"="+role)
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
	p := &Process{cmd: cmd, In: in, Out: bufio.NewReader(out), Exited: make(chan struct{})}
	go func() {
		p.Err = cmd.Wait()
		close(p.Exited)
	}()
	line, err := json.Marshal(job)
	if err == nil {
		_, err = in.Write(append(line, '\n'))
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Signal sends a signal. An error says that the process has ended.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process at once, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Exited
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

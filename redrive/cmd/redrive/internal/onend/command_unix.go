//go:build unix

package onend

import (
	"os/exec"
	"syscall"
)

// endTogether makes the end of a command's time end its children too.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

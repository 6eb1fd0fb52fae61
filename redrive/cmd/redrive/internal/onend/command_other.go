//go:build !unix

package onend

import "os/exec"

// endTogether does nothing where there are no groups of processes: only the command ends.
func endTogether(*exec.Cmd) {}

package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// repository is a checkout's folder.
type repository string

// git runs a git command there and returns what it printed, without the last line break.
func (r repository) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = string(r)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// all runs git commands until one fails.
func (r repository) all(commands ...[]string) error {
	for _, c := range commands {
		if _, err := r.git(c...); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the lines that a git command prints.
func (r repository) lines(args ...string) ([]string, error) {
	out, err := r.git(args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// clone copies the repository's commit to a new folder, as branch main. The copy commits and signs
// as the original does.
func (r repository) clone(dir string) (repository, error) {
	if _, err := r.git("clone", "-q", "--no-local", "--no-checkout", ".", dir); err != nil {
		return "", err
	}
	c := repository(dir)
	for _, key := range []string{"user.name", "user.email", "user.signingKey", "commit.gpgSign", "tag.gpgSign", "gpg.format"} {
		if value, err := r.git("config", key); err == nil {
			if _, err := c.git("config", key, value); err != nil {
				return "", err
			}
		}
	}
	head, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	return c, c.all([]string{"checkout", "-q", "-B", trunk, head})
}

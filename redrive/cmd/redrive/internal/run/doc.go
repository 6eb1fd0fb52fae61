// Package run has the verbs about runs: plan, run, runs, status, resume and abort.
package run

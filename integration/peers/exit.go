package main

// Exit statuses.
const (
	exitOK     = 0
	exitLost   = 1 // a program did not do its work, or lost some of it
	exitFailed = 2 // a workload could not be run, or the command line is wrong
)

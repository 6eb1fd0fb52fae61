// Package member runs a consumer as a process of its own. Its handler plays scripts, and a journal
// has what it does. The process runs until it is asked to end, or is killed.
package member

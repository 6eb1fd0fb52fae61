// Package resolve has the verbs by which an operator decides about letters without a run:
// discard and reopen.
package resolve

// Package cli has what all verbs share: their streams and settings, the session on a cluster
// that answered, exit codes, questions to the operator, and the sections of their help. It knows
// no verb.
package cli

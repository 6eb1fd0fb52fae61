// Package move has the verbs that take letters out of dead-letter topics or put them in: export,
// import and prune.
package move

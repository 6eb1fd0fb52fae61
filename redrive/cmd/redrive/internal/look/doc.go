// Package look has the verbs with which an operator sees what is there: topics, summary, list and
// show. They change nothing.
package look

// Package look has the verbs that show an operator what is there: topics, summary, list and show.
// They change nothing.
package look

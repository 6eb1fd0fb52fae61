// Package apply does what nobody has to ask for: it redrives letters as rules say, goes on with
// runs of servers that ended, and deletes letters as retentions say.
package apply

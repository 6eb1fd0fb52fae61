// Package apply does what needs no request: it redrives letters as rules say, goes on with runs of
// servers that ended, and deletes letters as retentions say.
package apply

// Package drivers holds what package classify says of the errors of clients to the clients themselves: their errors are
// provoked where that takes no server of theirs. It has tests only, in a module of its own, so that siding requires none
// of these clients.
package drivers

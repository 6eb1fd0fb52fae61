// Package drivers tests package classify with the errors of real clients, as far as these need no
// real server. It has tests only. It is a module of its own, so that siding requires none of these
// clients.
package drivers

// Package notes writes what the server keeps in ledgers: its notes about incidents, rules and runs.
package notes

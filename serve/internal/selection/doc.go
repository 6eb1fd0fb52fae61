// Package selection selects letters by the filters of the HTTP API and of rules.
package selection

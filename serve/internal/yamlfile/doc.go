// Package yamlfile reads YAML files that people write, again when they change, into structs. Its
// errors are for these people: each names the file, the line and the key, and says what is allowed
// there. All mistakes of a file are reported at once.
//
// The keys of a struct are the names in its yaml tags. Durations are as in 90s, 5m, 4h or 180d.
package yamlfile

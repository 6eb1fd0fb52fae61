// Package demo has the verb demo: an incident and its end, on a broker in this process. Tests of
// other verbs play incidents, too.
package demo

// Package console is the web console: pages that show dead-letter topics, what is in them, why, and
// who did what about it.
//
// Pages are rendered on the server, and complete without a script. The part of a page that changes
// is rendered once for all who may see the same, however many look (package view): a page, a stream
// of events and a poll have the same bytes. What a record contains is text, never HTML:
// html/template escapes it by its place.
//
// A page reads by package operate, over a desk, as the API does, and what it shows is a function of
// what it has read. Forms act by the same package. [access.Browser] knows who is there.
package console

// Package redact hides parts of letters before they are shown: members of JSON by their paths,
// headers by their names, and any text by patterns.
//
// What it cannot look into it hides as a whole: with paths, a value that is no JSON is not shown,
// unless there are patterns for it and no path has its name in it.
//
// Libraries for JSON paths select in decoded maps, where a member that occurs twice is there once.
// So its first value would stay visible, and the order of members and the digits of numbers would
// be lost. This package walks the text itself.
package redact

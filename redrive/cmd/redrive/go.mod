module github.com/sidingkafka/siding/redrive/cmd/redrive

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/mattn/go-runewidth v0.0.31
	golang.org/x/term v0.47.0
)

require (
	github.com/clipperhouse/uax29/v2 v2.2.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

// The root is not published yet, and the tool is built from this working tree.
replace github.com/sidingkafka/siding => ../../..

package main

// ceilings bound measures, so that the house does not decay. One that a change has to exceed is
// raised in that change, with the reason in its commit; one that a change leaves far behind is
// lowered.
var ceilings = map[string]int{
	"README.md words": 1500,
	"DESIGN.md words": 13500,

	longComments: 0,
	strayFiles:   0,
	strayTests:   0,

	"consumer largest cycle, lines":                   7220,
	"consumer references between files, upward":       83,
	"consumer types with methods in several families": 0,
	"dlq largest cycle, lines":                        500,
	"dlq references between files, upward":            6,
	"dlq types with methods in several families":      0,
	"redrive largest cycle, lines":                    720,
	"redrive references between files, upward":        18,
	"redrive types with methods in several families":  0,

	"consumer file lines, max":     490,
	"dlq file lines, max":          350,
	"redrive file lines, max":      510,
	"consumer function lines, max": 80,
	"dlq function lines, max":      55,
	"redrive function lines, max":  75,
}

// Package offsets tracks which delivered records of one partition are finished, and up to where the
// partition may be committed. The floor never passes an unfinished record, whatever the order in
// which records finish and whichever offsets are missing. The package also owns the metadata of a
// commit.
package offsets

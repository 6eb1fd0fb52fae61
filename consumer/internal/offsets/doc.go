// Package offsets knows, for one partition, which of the delivered records are finished, and so up
// to where the partition may be committed. It promises that the floor never passes a record that is
// not finished, whatever the order in which records finish and whatever offsets are missing. It
// also owns what goes into a commit's metadata. It knows nothing of lanes, clients or goroutines.
package offsets

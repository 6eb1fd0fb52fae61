package consumer

import "time"

// maxCommitBytes bounds a commit request, unless a single lane needs more. The broker appends a
// request to its offsets topic as one batch of at most 1 MiB (by default), and refuses all
// partitions of a larger one.
const maxCommitBytes = 256 << 10

// recommitAfter is the age at which an offset is committed again without progress. The broker drops
// offsets of topics to which no member subscribes after offsets.retention.minutes, 7 days by
// default (KIP-211). No member subscribes to tiers.
const recommitAfter = 24 * time.Hour

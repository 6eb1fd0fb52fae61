package main

// traps are known faults of other consumers with retries: how they lose, repeat or block records.
// They come from these consumers' issues and sources. Each has tests here, whose comments name its
// number: "// Trap 13: …". A number never changes.
var traps = []string{
	1:  "a partition that was paused when it was revoked is assigned again, and stays paused for ever",
	2:  "a rebalance occurs during a back-off, and the waiting record is dropped",
	3:  "two records of one partition fail, and the second seek undoes the first",
	4:  "a record that succeeds on one partition resets the attempts counted on another",
	5:  "the member heartbeats, the group is stable, and nothing is consumed",
	6:  "compaction and transaction markers leave gaps, and a tracker that counts offsets waits for them",
	7:  "commit metadata grows beyond the broker's limit, and the partition halts or its commits fail",
	8:  "records that wait for their time are kept in memory without a bound",
	9:  "handlers run concurrently, the latest one that finished is committed, and earlier ones are lost",
	10: "null and empty keys are taken for the same, and tombstones get lost between retries and the dead-letter topic",
	11: "headers grow with each hop, and the first error hides the last",
	12: "each retry starts another trace, or writes a second trace header",
	13: "a forged due time or count of attempts is accepted: the record is delivered at once, or never",
	14: "the configuration has fewer tiers or attempts than records in flight assume",
	15: "a retry topic has fewer partitions than its source, or the source grows",
	16: "work that ends after a revoke marks its offset, and rewinds the new owner or loses the rest of a batch",
	17: "handlers that are cancelled by a shutdown count as failures, and healthy records are dead-lettered",
	18: "a handler's own timeout is taken for the shutdown, and the record is skipped",
	19: "a dead letter is copied back with its headers and gets no retries, since they are used up",
	20: "the time for retries counts from when the record was produced, and behind a backlog the first failure is the last",
	21: "the dead-letter topic is missing, forbidden, or the copy is too large: the record is lost, or tried for ever",
	22: "a dead letter goes back to the source, and groups that had handled it get it again",
	23: "a replay has no group and no ledger: its progress is invisible, and it reads its own writes",
	24: "a record moves between its source and its dead-letter topic without end",
	25: "retention deletes a record that waits: its copy has an old timestamp, or the tier is longer than its topic's retention",
	26: "a service consumes the dead-letter topic, and the number of open letters is unknown",
	27: "a topic is deleted and recreated while it is consumed",
	28: "the group's offsets on the retry topics expire, since no member subscribes to them",
	29: "a source is recreated or a group rewound, and the new dead letters are taken for copies of old ones and deleted",
	30: "the broker's clock and the host's differ, and a parked record is written to its retry topic without end",
	31: "permission to write is granted after a refusal, and the producer fails until the process restarts",
	32: "one partition drains for its next owner, and the member does not read the partitions that it keeps",
	33: "a Retry-After of one second replaces the backoff: attempts are used up at once, or many records run in one instant",
	34: "a blocked partition changes its owner, and each new owner runs thousands of records before it stops",
	35: "the source grows, and a member that did not grow the siblings itself cannot write to the new partitions",
	36: "an outage uses up the attempts of healthy records, which end as dead letters, while retries multiply the load",
}

// later are traps that wait for a feature, which each entry names. A trap with a test is not in it.
var later map[int]string

// known reports whether a trap has that number.
func known(n int) bool { return n > 0 && n < len(traps) }

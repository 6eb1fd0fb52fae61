// Package guard decides when the records of a topic wait because too many of them fail, so that an
// outage dead-letters none, and no healthy record waits for others' faults. A [Guard] is a state
// machine for one topic in one process. It knows neither Kafka, nor a clock, nor a lock: each call
// says what the time is. A [Topic] has the lock and the timer, and wakes the lanes of a topic.
//
// # One measure
//
// The guard counts the runs of source records, by the time at which they began, in ten buckets of
// half a second, or of twelve runs if these took longer. A bucket counts once 95 % of its runs have
// ended. So a burst is one sample, an idle gap no time, and it says nothing that failures end
// first. But while a burst lasts, as many go on as run at a time, and its bucket counts late. So a
// strain also begins once enough have failed of all that began and 120 more, as if those that go
// on were good. Retries are no sample: they failed before. Only while the source is idle, good ones
// count in a strain. They strain a topic while its source is idle, and has had too few runs for a
// judgement: a process that gets its lanes in an outage has no other sample.
//
// A run is bad if it failed retryably, or with a defect: a panic, or an error that is terminal
// because nothing has named it. What the handler or a rule calls terminal or discarded is an
// answer, and good.
//
// # Three states
//
//	closed -- a fifth fails retryably --> strained -- nearly all is bad --> held
//	   ^                                   |    ^                            |
//	   +---- less fails, for 10 s ---------+    +---- probes are good -------+
//
// Closed: all records run. A failed attempt is an attempt. Retries that fail again cost the budget
// one each, and others nothing: so what an outage left drains at full speed.
//
// Strained, from a share Strain (0.2) of retryable failures on, in sixty runs or more: the source
// runs as ever. A retryable failure is no attempt: the record's copy waits in the tier in which it
// was, or in the first one, with the attempts that it had, until an hour after its first failure.
// Each retry costs the budget one. The budget earns a quarter from each run of the source, so that
// retries are a fifth of all runs and the load is at most 1.25 times what it would be; or one a
// second, where that is more. It ends once the share was below three quarters of that for 10 s, the
// time of a hold included. Of a source that is idle, or has too few runs, the share counts after an
// hour or MaxOutage.
//
// Held, once the bad runs are more by 120 than 39 times the good ones, in a measure with all its
// buckets: 120 without a good one, or 97.5 % of many. A topic with a share below Hold (0.95) is
// therefore held hardly ever, and one whose newest sixty runs are below it never. Records of the
// source wait where they are, and retries wait too. After 1, 2, 4, 8 and each 15 s there is a round
// of probes: twenty in the first rounds, later ten. A failed probe is no attempt, and its record
// stays where it is.
//
// The first good probe ends the rounds. From then on two runs may go on at a time, and one more for
// each that is good, as in TCP's slow start. These are no probes: a record that fails goes to its
// tier, so poison in front goes away. Fifty that fail one after the other bring the rounds back.
// The hold ends, in strained, when the runs do not need half of what they may have, and less than
// the share Hold of the measure is bad.
//
// It also ends a minute after the last run, since no record of the source waits then; 15 s after
// it, once a probe was good. It goes on for five minutes if records wait behind a run that does not
// return, or in a process without lanes, as in a rebalance. It goes on for MaxOutage if all lanes
// may have records that wait (they are paused, blocked or starting, or READ is refused), or if
// nothing but records that failed as probes ran, again and again. If the reason changes, each uses
// its share.
//
// # The lane's side
//
//   - Lanes take turns, beginning with the one after that which probed last. A turn is up to five
//     probes, one after the other.
//   - Under OrderPartition, the first probe of a turn is the lane's first record. The others are
//     the next ones that no probe has run; without these, those that failed run again, each once a
//     round. Those that failed stay in front of the others, in order. Once any succeeds, all of
//     them run again, in order, and are no probes: one that fails goes to its tier, at no attempt's
//     cost. So no record overtakes another, but for a good probe.
//   - Under OrderKey and OrderNone, a probe is a record that could run. One that failed keeps its
//     key, and goes behind the other ones that could run. In a hold, the first record that could
//     run and the last one take turns: those in front may all be of one tenant.
//   - Under OrderKey, two of a lane that wait for their keys are probes in a round, once all that
//     could run have failed since the last round with such ones, and the one with the key in this
//     round. Keys take turns, each with the first that waits. The second one is behind that: it is
//     one that no probe has run, or that ran longest ago, since many in front may fail for good. If
//     one of them succeeds, the downstream lives. Those in front of it run again, in order, and are
//     no probes: one that fails goes to its tier, at no attempt's cost.
//   - A lane whose room is full of records that failed as probes can read no other. After
//     MaxOutage, those that fail again retryably go to their tiers, at no attempt's cost.
//   - A retry claims its key not before it runs, and in a hold no redriven record has its key.
//   - A probe has failed in the round in which it ended: one that takes longer than a round would
//     else be the next one always. If another one was good meanwhile, its record runs at once.
//   - Policy.Immediate repeats no probe. Policy.MaxAge does not count the time of a hold.
//
// What it does not know: under OrderPartition, whether thousands of records in front that fail are
// an outage, or one tenant's. It looks behind them at the pace of the probes.
//
// The tests of this package play the guard beside a model of topics: testdata has what came out,
// and what the breaker and the retry budget did that it has replaced.
//
// # Where the numbers come from
//
// Retries as a fifth of all runs are the default of Finagle, Linkerd and Envoy. The other numbers
// are the smallest, or the largest, with which the simulation shows what is promised.
package guard

package api

import "time"

// Consumers are the consumer groups of a dead-letter topic's source.
type Consumers struct {
	Source string     `json:"source" doc:"The topic that the groups consume."`
	Known  *time.Time `json:"known" doc:"As of when; null before the server has looked."`
	Hidden int        `json:"hidden" doc:"Groups of the cluster that the server may not describe: these may be some of them."`
	Groups []Consumer `json:"groups" doc:"Those that need somebody first."`
}

// Consumer is what a consumer group does with a topic. Consumers of siding say in their commits why
// records do not run, some seconds late; of other groups members and lag are known.
type Consumer struct {
	Group string `json:"group" doc:"Consumer group."`
	// A later version may have further states.
	State      string            `json:"state" doc:"The worst that is known: no members, stopped, missing, denied, refused, unreadable, stuck, starting, blocked (by several of these), held, strained, not read, waits, paused, suspects, unknown, rebalancing, runs."`
	Bad        bool              `json:"bad" doc:"Somebody has to look."`
	Text       string            `json:"text,omitempty" doc:"What is wrong, in words."`
	GroupState string            `json:"groupState,omitempty" doc:"State of the group as its coordinator calls it; empty if the server may not describe it."`
	Siding     bool              `json:"siding" doc:"A consumer of siding has committed for the group."`
	Members    []ConsumerMember  `json:"members" doc:"Members of the group."`
	Partitions *int              `json:"partitions" doc:"Partitions of the topic; null if that is not known."`
	Assigned   int               `json:"assigned" doc:"Partitions that members have."`
	Lag        *int64            `json:"lag" doc:"Offsets between the commits and the ends of the logs; null if that is not known."`
	Parked     *int64            `json:"parked" doc:"The same of all retry topics, with markers of transactions and the records of other groups; null if that is not known."`
	NextDue    *time.Time        `json:"nextDue" doc:"When the next parked record is due; null if none is parked, or that is not known."`
	Releases   []string          `json:"releases" doc:"Versions of the service that its last commits name; their first 24 bytes."`
	Guard      *Guard            `json:"guard" doc:"That the group holds records back, or runs them in a strain; null if it does neither."`
	Troubles   []ConsumerTrouble `json:"troubles" doc:"Why records of some partitions do not run, or run one by one."`
	Tiers      []ConsumerTier    `json:"tiers" doc:"Retry topics of the group, the shortest delay first."`
}

// ConsumerMember is a member of a consumer group.
type ConsumerMember struct {
	ID         string   `json:"id" doc:"Id of the member."`
	Instance   string   `json:"instance,omitempty" doc:"Id of a static member."`
	Client     string   `json:"client" doc:"Client id."`
	Host       string   `json:"host" doc:"Host, as brokers see it."`
	Releases   []string `json:"releases" doc:"Versions of the service that the last commits of its partitions name."`
	Partitions []int32  `json:"partitions" doc:"Partitions of the topic that it has."`
}

// ConsumerTrouble is one thing that several partitions have in common.
type ConsumerTrouble struct {
	Kind       string     `json:"kind" doc:"Kind of it: blocked, paused, unassigned, transaction, suspects."`
	Text       string     `json:"text" doc:"What is wrong."`
	Since      *time.Time `json:"since" doc:"Since when, of the first of them; null if that is not known."`
	Partitions []int32    `json:"partitions" doc:"Partitions of the topic."`
	Lag        *int64     `json:"lag" doc:"Records that wait there; null if that is not known."`
}

// ConsumerTier is a retry topic of a consumer group.
type ConsumerTier struct {
	Topic   string     `json:"topic" doc:"Name of the retry topic."`
	DelayMS int64      `json:"delayMs" doc:"Its delay in milliseconds."`
	Parked  *int64     `json:"parked" doc:"Records that are parked there, counted by offsets; null if that is not known."`
	NextDue *time.Time `json:"nextDue" doc:"When the next of them is due; null if none is parked, or that is not known."`
}

// Stalled is a consumer group of a topic's source that needs somebody.
type Stalled struct {
	Group string `json:"group" doc:"Consumer group."`
	State string `json:"state" doc:"As a Consumer has it."`
	Text  string `json:"text" doc:"What is wrong, in words."`
	Lag   *int64 `json:"lag" doc:"Records that wait, all partitions of the topic together; null if that is not known."`
}

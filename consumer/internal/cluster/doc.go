// Package cluster asks the brokers what topics there are, where logs begin and end, and where
// groups are. It promises answers that are as fresh as a broker's, that come little later than the
// context ends, and that name what could not be learned: a broker or a permission that is missing
// holds up only the partitions that it is about. It knows nothing of lanes, and changes nothing.
package cluster

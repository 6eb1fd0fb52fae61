// Package consumers shows the consumer groups of topics from outside: their members and lag, and
// what the commits of siding's consumers say about guards, lanes, suspects and the release.
package consumers

// Group is a consumer group.
type Group struct {
	Name string
	// State is as the broker calls it, such as "Stable" or "Empty"; empty if it is not known.
	State   string
	Members []Member
	// Undescribed is why the state and the members are not known; nil if they are.
	Undescribed error
	Uses        []Use // by topic, in the order of their names
}

// Member is a member of a group.
type Member struct {
	ID, Instance, Client, Host string             // Instance is empty unless the member is static
	Partitions                 map[string][]int32 // of the topics that were asked for, ascending
	// Releases are those that the commits of its partitions name, ascending; one as a rule.
	Releases []string
}

// Idle reports whether it is known that no member is there to run what is left.
func (g *Group) Idle() bool { return g.Undescribed == nil && g.State != "" && len(g.Members) == 0 }

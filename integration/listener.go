package integration

import (
	"fmt"
	"maps"
	"strings"
)

// listener is a further way for clients into each broker, with a protocol and settings of its own.
// Its port is published like that of the clients' listener.
type listener struct {
	name     string            // in capitals, as in server.properties
	protocol string            // SSL, SASL_SSL, …
	settings map[string]string // by what follows listener.name.<name>. in server.properties
}

// firstListenerPort is the port of the first further listener inside a container; each further one
// has the next.
const firstListenerPort = 9100

// configure adds the listener, the config's i-th, to the settings of a node.
func (l listener) configure(own map[string]string, i int, advertised string) {
	own["listeners"] += fmt.Sprintf(",%s://:%d", l.name, firstListenerPort+i)
	own["advertised.listeners"] += fmt.Sprintf(",%s://%s", l.name, advertised)
	own["listener.security.protocol.map"] += fmt.Sprintf(",%s:%s", l.name, l.protocol)
	for key, value := range maps.All(l.settings) {
		own["listener.name."+strings.ToLower(l.name)+"."+key] = value
	}
}

// ports returns the ports inside a container that clients connect to, in the order of the addresses
// that [config.environment] takes.
func (c config) ports() []int {
	inside := []int{clientPort}
	for i := range c.listeners {
		inside = append(inside, firstListenerPort+i)
	}
	return inside
}

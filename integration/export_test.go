package integration

// WithListener adds a further way for clients into each broker, by a protocol of server.properties.
// The settings are named by what follows listener.name.<name>. there.
func WithListener(name, protocol string, settings map[string]string) Option {
	return func(c *config) { c.listeners = append(c.listeners, listener{name, protocol, settings}) }
}

// WithFile puts a file into each broker's container.
func WithFile(path string, content []byte) Option {
	return func(c *config) {
		if c.files == nil {
			c.files = map[string][]byte{}
		}
		c.files[path] = content
	}
}

// Listener returns the addresses of a further listener, as Brokers does for the first one.
func (k *Kafka) Listener(name string) []string {
	addrs := make([]string, len(k.brokers))
	for i, b := range k.brokers {
		addrs[i] = b.further[name]
	}
	return addrs
}

// Close is what Run does at its end, for a package with a second cluster.
func (s *Shared) Close() int { return s.close() }

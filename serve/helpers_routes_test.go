package serve

import "github.com/sidingkafka/siding/serve/internal/operate"

// ConsoleRoutes returns the patterns of the console's routes.
func (s *Server) ConsoleRoutes() []string { return s.console.Routes() }

// RunVersion returns the version of the runs of a topic.
func (s *Server) RunVersion(topic string) uint64 { return operate.RunVersion(s.desk, topic) }

package serve

// ConsoleRoutes returns the patterns of the console's routes.
func (s *Server) ConsoleRoutes() []string { return s.console.Routes() }

package consumer

import (
	"runtime/debug"
)

// softwareVersion is what brokers log for client.software.version.
func softwareVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == modulePath && m.Version != "" && m.Version[0] == 'v' {
				return m.Version
			}
		}
	}
	return "devel"
}

const modulePath = "github.com/sidingkafka/siding"

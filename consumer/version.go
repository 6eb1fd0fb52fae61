package consumer

import (
	"runtime/debug"
)

// softwareVersion is siding's version, which brokers log as client.software.version.
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

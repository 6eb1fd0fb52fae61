package consumer

import (
	"runtime/debug"
	"strings"
)

// softwareVersion is siding's version, which brokers log as client.software.version.
func softwareVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionAmong(info.Deps)
	}
	return versionAmong(nil)
}

// versionAmong returns the version of siding among a program's modules. One that a replace
// directive takes from a folder has none, whatever version go.mod requires.
func versionAmong(modules []*debug.Module) string {
	for _, m := range modules {
		if m.Path != modulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if strings.HasPrefix(m.Version, "v") {
			return m.Version
		}
	}
	return "devel"
}

const modulePath = "github.com/sidingkafka/siding"

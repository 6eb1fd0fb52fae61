package root

// The verb that prints the version of the program.

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func newVersion(t *cli.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which redrive this is",
		Long:  "Version prints the version of redrive, the commit that it was built from and the Go that built it.",
		Example: `  redrive version
  redrive version -o json`,
		RunE: func(*cobra.Command, []string) error {
			version, commit := built()
			return t.Screen.Object(
				output.NewField("version", "VERSION", version),
				output.NewField("commit", "COMMIT", commit),
				output.NewField("go", "GO", runtime.Version()),
			)
		},
	}
}

// built returns what the go command wrote into the program. The commit is nil where the program was
// not built from git.
func built() (version string, commit any) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return info.Main.Version, commit
}

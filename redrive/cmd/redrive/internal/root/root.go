package root

// The command line, its help and its errors.

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/look"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/move"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/resolve"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/run"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/servecmd"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/watch"
)

// New makes the command line. The demo types commands into a shell.
func New(t *cli.Tool, shell demo.Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "redrive",
		Short: "Show dead letters, and redrive them after a fix",
		Long: `Redrive shows the dead-letter topics of a Kafka cluster, and redrives dead letters after a fix: it sends a few
first, then more, and stops when they fail again.

Data goes to stdout, messages and progress to stderr. Exit codes: 0 done, 1 error, 2 usage, 3 records failed
again, 4 refused, 5 done, and some records have no outcome yet, 6 done, and records were not sent.

Options of the connection and of names come from flags, then from the environment (--tls-ca is SIDING_TLS_CA),
then from a profile of the configuration file. All others are flags only. The file is ` + connect.DefaultFile + `
in the user's configuration folder:

    profile: staging                  # the default of --profile
    profiles:
      staging:
        brokers: [kafka-1:9093, kafka-2:9093]
        tls-ca: ca.pem                # relative to this file
        sasl: SCRAM-SHA-512
        sasl-user: oncall
        sasl-password-env: KAFKA_PASSWORD
        redact: [customer.card, "items[*].iban"]

Secrets come from a file or from the environment, never from a flag's value.`,
		Example: `  redrive topics --brokers localhost:9092
  SIDING_SASL_PASSWORD=… redrive topics --profile staging -o json`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRun: func(*cobra.Command, []string) { begin(t) },
	}
	root.SetIn(t.Stdin)
	root.SetOut(t.Stdout)
	root.SetErr(t.Screen.Words())
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(wrongFlag)

	addFlags(t, root)
	addVerbs(t, root, shell)
	for _, verb := range root.Commands() {
		checkArgs(t, verb)
	}
	root.SetUsageFunc(func(cmd *cobra.Command) error { return help(t, cmd) })
	root.InitDefaultCompletionCmd()
	nameShell(root)
	completeFlags(t, root)
	refuseEmpty(root)
	return root
}

// addFlags adds the flags that all verbs have.
func addFlags(t *cli.Tool, root *cobra.Command) {
	all := root.PersistentFlags()
	t.Flags = connect.AddFlags(all)
	all.VarP(output.Choice[output.Format]{To: &t.Screen.Format, From: output.Formats, Kind: "format"}, "output", "o", "`format` of the data: "+strings.Join(output.Formats, ", "))
	t.Colour = output.Auto
	all.Var(output.Choice[output.Colour]{To: &t.Colour, From: output.Colours, Kind: "when"}, "color", "`when` to use colour: "+strings.Join(output.Colours, ", ")+"; auto is in a terminal without NO_COLOR")
	all.BoolVar(&t.UTC, "utc", false, "tables show times in UTC instead of local time; JSON always does")
	all.BoolVarP(&t.Verbose, "verbose", "v", false, "log what the Kafka client does to stderr")
}

// addVerbs adds the verbs, in the order and the groups of the help.
func addVerbs(t *cli.Tool, root *cobra.Command, shell demo.Shell) {
	for _, g := range []struct {
		title string
		verbs []*cobra.Command
	}{
		{groupInspect, []*cobra.Command{look.NewTopics(t), look.NewSummary(t), look.NewList(t), look.NewShow(t), look.NewConsumers(t), watch.NewWatch(t), look.NewDoctor(t)}},
		{groupRun, []*cobra.Command{run.NewPlan(t), run.NewRun(t), run.NewRuns(t), run.NewStatus(t), run.NewResume(t), run.NewAbort(t)}},
		{groupServe, []*cobra.Command{servecmd.NewServe(t)}},
		{groupResolve, []*cobra.Command{resolve.NewDiscard(t), resolve.NewReopen(t), move.NewExport(t), move.NewImport(t), move.NewPrune(t)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.title
			root.AddCommand(verb)
		}
	}
	root.AddCommand(demo.New(t, shell), newVersion(t))
}

// begin is called once the command line is read. An error before that is an error of usage.
func begin(t *cli.Tool) {
	t.Started = true
	t.Screen.SetColour(t.Colour)
	t.Screen.Look = output.Look{Now: t.Now, Zone: t.Now().Location()}
	if t.UTC {
		t.Screen.Look.Zone = time.UTC
	}
}

// nameShell makes completion without a known shell an error; cobra would print help and exit with
// code 0.
func nameShell(root *cobra.Command) {
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has made it
	}
	completion.Use = "completion SHELL"
	completion.Args = func(*cobra.Command, []string) error {
		return errors.New("completion takes the name of a shell: bash, zsh, fish, powershell")
	}
	// cobra checks the arguments of commands that run only
	completion.RunE = func(*cobra.Command, []string) error { return nil }
}

func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown verb %q%s", args[0], hint)
}

// checkArgs has a verb take the arguments that its Use names, and completes the first one by topics
// or runs. TOPIC... is one topic or several.
func checkArgs(t *cli.Tool, verb *cobra.Command) {
	names, _, _ := strings.Cut(verb.Use, " --")
	several := strings.HasSuffix(names, "...")
	names, optional := strings.CutSuffix(names, "...]")
	several = several || optional
	want := strings.Fields(strings.TrimSuffix(names, "..."))[1:]
	verb.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(want) && !optional:
			return fmt.Errorf("%s is missing: %s", strings.Join(want[len(args):], " and "), cmd.UseLine())
		case len(want) == 0 && len(args) > 0:
			return errors.New("this verb takes flags only")
		case several:
			for i, name := range args {
				if slices.Contains(args[:i], name) {
					return fmt.Errorf("%s is given twice", name)
				}
			}
		case len(args) > len(want):
			return fmt.Errorf("too many arguments: %q: %s", args[len(want):], cmd.UseLine())
		}
		return nil
	}
	if len(want) > 0 && want[0] == "TOPIC" && verb.ValidArgsFunction == nil {
		verb.ValidArgsFunction = subject.CompleteTopic(t, several)
	}
	if len(want) > 0 && want[0] == "RUN" {
		verb.ValidArgsFunction = run.CompleteRun(t, verb.Name() != "status")
	}
}

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

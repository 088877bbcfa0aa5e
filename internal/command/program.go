// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/shown"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is one run of the command.
type program struct {
	stdin  *os.File
	screen *screen

	// The flags that several commands share.
	configFile string
	loaded     *config.Config // nil before it is read
	logLevel   string
	logFormat  string
	json       bool
	trust      []string // NAME=VALUE
	history    string   // the file of the store of conversations, or nowhere; empty for the configuration's

	// own says that conversations are kept in the user's own store, since nobody
	// has named another; unkept is why they cannot be.
	own    bool
	unkept error

	trace bool

	engines []Engine // those that the program brings along

	// serves says that the command serves, and not only what it would.
	serves bool
	// watched says that what the command does is seen outside, as the variables
	// of OpenTelemetry and trace say; scraped that there are metrics to scrape.
	watched, scraped bool
	watching         *watching // nil unless watched
	endLog           func()    // nil until there is a log

	// quiet is the level to log from when nobody says; empty means warn.
	quiet string
	// views says that a person sees the calls of turns, see [view].
	views bool
}

// defaultConfig is the configuration that is read unless another is named.
const defaultConfig = "consort.toml"

// Main runs the command line of args, which does not begin with the name of the
// program, and returns the status to exit with, when nothing that it started is
// left. It is called once in a process, whose signals it heeds.
func Main(ctx context.Context, args []string, stdin, stdout, stderr *os.File, options ...Option) int {
	p := newProgram(stdin, stdout, stderr)
	for _, choose := range options {
		choose(p)
	}
	return p.execute(ctx, args)
}

func newProgram(stdin, stdout, stderr *os.File) *program {
	return &program{stdin: stdin, screen: newScreen(stdout, stderr)}
}

// execute runs the command line and returns the status to exit with.
func (p *program) execute(ctx context.Context, args []string) int {
	// Writing to a pipe that nobody reads any more is then an error like any
	// other, and does not end the process before its servers are closed.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	root := p.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	p.end()
	p.screen.close()
	if errors.Is(p.screen.failure(), syscall.EPIPE) {
		return int(statusPipe) // whoever reads has enough, as head has
	}
	var known *exit
	if err != nil && !errors.As(err, &known) { // from the parsing of the command line
		p.formatOf(root, args)
		err = usagef("%w", err)
	}
	if text := complaint(err); text != "" {
		p.screen.note("%s%s", p.screen.notes.bad("consort: "), text)
	}
	return int(statusOf(err))
}

// formatOf looks for the format of the log in a command line that is wrong, of
// which cobra may have read nothing.
func (p *program) formatOf(root *cobra.Command, args []string) {
	flags := root.PersistentFlags()
	flags.Usage = func() {}
	flags.ParseErrorsAllowlist.UnknownFlags = true
	_ = flags.Parse(args)
	p.inJSON("")
}

// end exports and logs what is left.
func (p *program) end() {
	if p.watching != nil {
		p.watching.close()
	}
	if p.endLog != nil {
		p.endLog()
	}
}

// complaint is what a person is told of err; empty for nothing, as when all
// was said.
func complaint(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *exit:
		return complaint(e.err)
	case interface{ Unwrap() []error }:
		var texts []string
		for _, part := range e.Unwrap() {
			if text := complaint(part); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return shown.Text(strings.TrimRight(err.Error(), "\n"))
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "consort",
		Short: "Conversations with a model that uses the tools of MCP servers",
		Long: "Consort holds conversations with a language model that uses the tools of MCP\n" +
			"servers, as one TOML file says. To see one without any of these: consort demo",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if flag := cmd.Flags().Lookup("config"); flag.Changed && (cmd.Name() == "demo" || cmd.Name() == "version") {
				return usagef("--config: %s reads no configuration; leave the flag out", cmd.CommandPath())
			}
			switch config.Format(p.logFormat) {
			case "", config.FormatConsole, config.FormatJSON:
				p.inJSON("")
				return nil
			}
			return usagef("--log-format %s: expected console or json", p.logFormat)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetOut(p.screen)
	root.SetErr(p.screen.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&p.configFile, "config", defaultConfig, "read the configuration from `FILE`")
	flags.StringVar(&p.logLevel, "log-level", "", "log from `LEVEL` on: debug, info, warn or error (default: the file's, or warn)")
	flags.StringVar(&p.logFormat, "log-format", "", "log in `FORMAT`: console, for people, or json, an object a line (default: the file's, or console)")
	root.AddCommand(
		p.demoCommand(), p.chatCommand(), p.runCommand(), p.resumeCommand(), p.approveCommand(), p.historyCommand(), p.toolsCommand(), p.callCommand(),
		p.resourcesCommand(), p.promptsCommand(), p.serveCommand(), p.workerCommand(),
		p.checkCommand(), p.pinsCommand(), p.versionCommand(), p.demoServerCommand(),
	)
	p.sayArguments(root)
	return root
}

// sayArguments makes the commands below cmd say which arguments they have, to
// whom gives others.
func (p *program) sayArguments(cmd *cobra.Command) {
	for _, cmd := range cmd.Commands() {
		if cmd.HasSubCommands() {
			p.sayArguments(cmd) // what is too much may be a command that there is not
			continue
		}
		fit := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if fit == nil {
				return nil
			}
			err := fit(cmd, args)
			if own := (*exit)(nil); err == nil || errors.As(err, &own) {
				return err
			}
			p.inJSON("") // as the flags say, which were read
			_, names, _ := strings.Cut(cmd.Use, " ")
			return usagef("%w; expected: %s", err, strings.TrimSpace(cmd.CommandPath()+" "+names))
		}
	}
}

// withJSON adds the flag --json to a command.
func (p *program) withJSON(cmd *cobra.Command, usage string) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
	return cmd
}

// withTrace adds the flag --trace to a command, whose work is seen outside in
// any case.
func (p *program) withTrace(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.trace, "trace", false, "print the spans of each turn, or call, to standard error")
	cmd.PreRun = func(*cobra.Command, []string) { p.watched = true }
	return cmd
}

// does makes the function of a command, which ends with SIGINT, SIGTERM and
// SIGHUP. An error that has no status becomes a failure of the runtime.
func does(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return doesUntil(run, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// doesUntil is does for commands that end with other signals.
func doesUntil(run func(ctx context.Context, args []string) error, signals ...os.Signal) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), signals...)
		defer stop()
		err := named(cmd.Flags())
		if err == nil {
			err = run(ctx, args)
		}
		if err != nil && ctx.Err() != nil {
			var unclosed *closeError
			stopped := fmt.Errorf("stopped: %w", context.Cause(ctx))
			if errors.As(err, &unclosed) {
				stopped = errors.Join(stopped, unclosed)
			}
			err = stopped
		}
		if err != nil {
			err = &exit{statusOf(err), err}
		}
		return err
	}
}

// named is an error if a flag that names something was given without a name, as
// by a variable of a shell that is not set: what would be done then is not what
// was meant.
func named(flags *pflag.FlagSet) error {
	for _, name := range []string{"conversation", "id", "as", "history"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed && flag.Value.String() == "" {
			return usagef("--%s: it is empty; give it a value, or leave it out", name)
		}
	}
	if flag := flags.Lookup("history"); flag != nil && strings.Contains(flag.Value.String(), "://") { // with a password, maybe
		return usagef("--history: expected a file, and not a URL; a server goes into the configuration: [history] with store = \"postgres\" and dsn = \"env:DATABASE_URL\"")
	}
	return nil
}

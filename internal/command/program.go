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
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/otelsetup"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is one run of the command.
type program struct {
	stdin  *os.File
	screen *terminal.Screen

	// The flags that several commands share.
	configFile string
	loaded     *config.Config // nil until it is read
	logLevel   string
	logFormat  string
	json       bool
	trust      []string // NAME=VALUE
	history    string   // the file of the conversation store, or nowhere; empty for the configuration's

	// own is set if conversations are kept in the user's own store, because no other
	// store was named; unkept is the error if that store cannot be used.
	own    bool
	unkept error

	trace bool

	engines []Engine // the engines that the program adds

	// serves is set if the certificates of [serve] are needed: by serve, and while check
	// opens its files.
	serves bool
	// watched enables telemetry, according to the OpenTelemetry variables and trace;
	// scraped adds metrics for a scraper.
	watched, scraped bool
	watching         *otelsetup.Exports // nil unless watched
	endLog           func()             // nil until there is a log

	// quiet is the default log level of the command; empty means warn.
	quiet string
	// views is set if a person sees the calls of turns, see [view].
	views bool
}

// defaultConfig is the configuration file to read if no other is named.
const defaultConfig = "consort.toml"

// Main runs the command line in args, which does not include the name of the program, and
// returns the exit status. When Main returns, nothing that it started is left running.
// Call it once per process: it handles the signals of the process.
func Main(ctx context.Context, args []string, stdin, stdout, stderr *os.File, options ...Option) int {
	p := newProgram(stdin, stdout, stderr)
	for _, choose := range options {
		choose(p)
	}
	return p.execute(ctx, args)
}

func newProgram(stdin, stdout, stderr *os.File) *program {
	return &program{stdin: stdin, screen: terminal.NewScreen(stdout, stderr)}
}

// execute runs the command line and returns the exit status.
func (p *program) execute(ctx context.Context, args []string) int {
	// Writing to a closed pipe then returns an ordinary error and does not end the
	// process before its servers are closed.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	root := p.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	p.end()
	p.screen.Close()
	if errors.Is(p.screen.Err(), syscall.EPIPE) {
		return int(exit.Pipe) // the reader wants no more output, like head
	}
	var known *exit.Error
	if err != nil && !errors.As(err, &known) { // from the parsing of the command line
		p.formatOf(root, args)
		err = exit.Usagef("%w", err)
	}
	if text := complaint(err); text != "" {
		p.screen.Note("%s%s", p.screen.Notes.Bad("consort: "), text)
	}
	return int(exit.StatusOf(err))
}

// formatOf reads the log format from an invalid command line. Cobra may have stopped
// before it read that flag.
func (p *program) formatOf(root *cobra.Command, args []string) {
	flags := root.PersistentFlags()
	flags.Usage = func() {}
	flags.ParseErrorsAllowlist.UnknownFlags = true
	_ = flags.Parse(args)
	p.inJSON("")
}

// end exports the remaining telemetry and logs the remaining lines.
func (p *program) end() {
	if p.watching != nil {
		p.watching.Close()
	}
	if p.endLog != nil {
		p.endLog()
	}
}

// complaint returns the text of err for the user, or "" if everything was printed
// already.
func complaint(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *exit.Error:
		return complaint(e.Err)
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
				return exit.Usagef("--config: %s reads no configuration; leave the flag out", cmd.CommandPath())
			}
			switch config.Format(p.logFormat) {
			case "", config.FormatConsole, config.FormatJSON:
				p.inJSON("")
				return nil
			}
			return exit.Usagef("--log-format %s: expected console or json", p.logFormat)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetOut(p.screen)
	root.SetErr(p.screen.Stderr)
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

// sayArguments adds the expected arguments to the argument errors of the commands below
// cmd.
func (p *program) sayArguments(cmd *cobra.Command) {
	for _, cmd := range cmd.Commands() {
		if cmd.HasSubCommands() {
			p.sayArguments(cmd) // an extra argument may be an unknown command
			continue
		}
		fit := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if fit == nil {
				return nil
			}
			err := fit(cmd, args)
			if own := (*exit.Error)(nil); err == nil || errors.As(err, &own) {
				return err
			}
			p.inJSON("") // the flags have been parsed by now
			_, names, _ := strings.Cut(cmd.Use, " ")
			return exit.Usagef("%w; expected: %s", err, strings.TrimSpace(cmd.CommandPath()+" "+names))
		}
	}
}

// withJSON adds the flag --json to a command.
func (p *program) withJSON(cmd *cobra.Command, usage string) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
	return cmd
}

// withTrace adds the flag --trace to a command, and enables telemetry for it even without
// the flag.
func (p *program) withTrace(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.trace, "trace", false, "print the spans of each turn, or call, to standard error")
	cmd.PreRun = func(*cobra.Command, []string) { p.watched = true }
	return cmd
}

// does adapts run to cobra and cancels its context on SIGINT, SIGTERM and SIGHUP. An
// error without a status becomes a failure of the runtime.
func does(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return doesUntil(run, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// doesUntil is like does, for other signals.
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
			err = exit.With(exit.StatusOf(err), err)
		}
		return err
	}
}

// named returns an error if a flag that names something is empty, for example because a
// shell variable is not set. The command would then do something unintended.
func named(flags *pflag.FlagSet) error {
	for _, name := range []string{"conversation", "id", "as", "history"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed && flag.Value.String() == "" {
			return exit.Usagef("--%s: it is empty; give it a value, or leave it out", name)
		}
	}
	if flag := flags.Lookup("history"); flag != nil && strings.Contains(flag.Value.String(), "://") { // it may contain a password
		return exit.Usagef("--history: expected a file, and not a URL; a server goes into the configuration: [history] with store = \"postgres\" and dsn = \"env:DATABASE_URL\"")
	}
	return nil
}

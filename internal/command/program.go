// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/command/usage"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/gateway"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/otelsetup"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/mcpadapter/login"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// program is one run of the command: what it was given, and what it has started.
type program struct {
	stdin   *os.File
	screen  *terminal.Screen
	engines []gateway.Engine // added with [WithEngine]

	// The flags that several commands share.
	flags
	location histories.Location // --config, --history

	// What the command needs; it decides before it calls [program.load] and
	// [program.assemble].
	needs needs

	approver *approvals.Approver // decides about calls; nil for commands without questions

	view       terminal.Renderer      // renders turns for a person; nil for the default
	level      zap.AtomicLevel        // of the log
	assembling config.AssembleOptions // of the last assembly
	logins     login.Store            // of the last assembly; nil without any
	exports    *otelsetup.Exports     // nil unless telemetry is on
	endLog     func()                 // nil until there is a log
}

// needs says what a command needs; the zero value is for a command that only connects to
// servers.
type needs struct {
	quiet        config.Level // the default log level; empty means warn
	view         bool         // a person sees the calls of turns, see [terminal.View]
	certificates bool         // those of [serve]
	forClients   bool         // see [config.AssembleOptions].ForClients
	shared       bool         // a model or clients read the errors of servers, too
	telemetry    bool         // according to the OpenTelemetry variables and --trace
	metrics      bool         // for a scraper; with telemetry
	replaceable  bool         // the assembly may be replaced, see [program.reassemble]
}

// Option configures [Main].
type Option func(*program)

// WithEngine adds an engine.
func WithEngine(e gateway.Engine) Option {
	return func(p *program) { p.engines = append(p.engines, e) }
}

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
	return &program{stdin: stdin, screen: terminal.NewScreen(stdout, stderr), level: zap.NewAtomicLevel()}
}

// execute runs the command line and returns the exit status.
func (p *program) execute(ctx context.Context, args []string) int {
	// Writing to a closed pipe then returns an ordinary error and does not end the
	// process before its servers are closed.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	root := rootCommand(p)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	usage.RequireCommands(root)
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
	if text := exit.Text(err); text != "" {
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
	p.inJSON(false)
}

// end exports the remaining telemetry and logs the remaining lines.
func (p *program) end() {
	if p.exports != nil {
		p.exports.Close()
	}
	if p.endLog != nil {
		p.endLog()
	}
}

func rootCommand(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "consort",
		Short: "Conversations with a model that uses the tools of MCP servers",
		Long: "Consort runs conversations with a language model that uses the tools of MCP\n" +
			"servers, configured in one TOML file. To see one without any setup: consort demo",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseConfiguration(cmd); err != nil {
				return err
			}
			switch p.logFormat {
			case "", "console", "json":
				p.inJSON(false)
				return nil
			}
			return exit.Usagef("--log-format %s: expected console or json", p.logFormat)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage.FlagError(cmd.Flags(), err) })
	root.SetOut(p.screen)
	root.SetErr(p.screen.Stderr)
	flags := root.PersistentFlags()
	chosen := &p.location.Config
	flags.StringVar(&chosen.File, "config", "", "read the configuration from `FILE` (default: $CONSORT_CONFIG, ./consort.toml or the user's own)")
	flags.StringVar(&chosen.Model, "model", "", "use the model `NAME` instead of the configuration's; needs no file")
	flags.StringVar(&chosen.BaseURL, "base-url", "", "reach the model at `URL`; keys of the file are not sent there")
	flags.StringArrayVar(&chosen.Set, "set", nil,
		"set a key of the configuration, `KEY=VALUE`, such as model.temperature=0.2; other users can see a command line, so write a secret as KEY=env:VARIABLE")
	flags.StringVar(&p.logLevel, "log-level", "", "the minimum log `LEVEL`: debug, info, warn or error (default: the configuration's, or warn)")
	flags.StringVar(&p.logFormat, "log-format", "", "log in `FORMAT`: console, for people, or json, one object per line (default: the file's, or console)")
	root.AddCommand(
		demoCommand(p), initCommand(p), chatCommand(p), runCommand(p), resumeCommand(p), approveCommand(p), approvalsCommand(p), historyCommand(p), toolsCommand(p), callCommand(p),
		resourcesCommand(p), promptsCommand(p), serveCommand(p), consoleCommand(p), reloadCommand(p), workerCommand(p),
		checkCommand(p), pinsCommand(p), loginCommand(p), logoutCommand(p), loginsCommand(p), tokenCommand(p), versionCommand(p), demoServerCommand(p),
	)
	expectArguments(p, root)
	addCompletions(p, root)
	return root
}

// refuseConfiguration returns an error if a command that reads no configuration is given
// one. Flags of its own that have the same names are its own matter.
func refuseConfiguration(cmd *cobra.Command) error {
	refused := map[string][]string{
		"demo": {"config", "set"}, "init": {"config", "set"},
		"version": {"config", "set", "model", "base-url"}, "approvals": {"config", "set", "model", "base-url"},
		"token":  {"config", "set", "model", "base-url"},
		"reload": {"set", "model", "base-url"},
	}[strings.Fields(cmd.CommandPath() + " consort")[1]]
	for _, name := range refused {
		if flag := cmd.InheritedFlags().Lookup(name); flag != nil && flag.Changed {
			return exit.Usagef("--%s: %s reads no configuration; omit the flag", name, cmd.CommandPath())
		}
	}
	return nil
}

// Tree returns the command with all its subcommands and flags, for the pages of a manual.
func Tree() *cobra.Command { return rootCommand(newProgram(os.Stdin, os.Stdout, os.Stderr)) }

// expectArguments adds the expected arguments to the argument errors of the commands below
// cmd.
func expectArguments(p *program, cmd *cobra.Command) {
	for _, cmd := range cmd.Commands() {
		if cmd.HasSubCommands() {
			expectArguments(p, cmd) // an extra argument may be an unknown command
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
			p.inJSON(false) // the flags have been parsed by now
			_, names, _ := strings.Cut(cmd.Use, " ")
			return exit.Usagef("%w; expected: %s", err, strings.TrimSpace(cmd.CommandPath()+" "+names))
		}
	}
}

// runE adapts run to cobra and cancels its context on SIGINT, SIGTERM and SIGHUP. An
// error without a status becomes a failure of the runtime.
func runE(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return runEUntil(run, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// stopped returns err, or if a signal or Ctrl-C at a question ended the command, an error that
// says only that, and what could not be closed.
func stopped(ctx context.Context, err error) error {
	reason := context.Cause(ctx)
	if reason == nil && errors.Is(err, terminal.ErrInterrupted) {
		reason = terminal.ErrInterrupted
	}
	if reason == nil {
		return err
	}
	over := fmt.Errorf("stopped: %w", reason)
	if unclosed, left := errors.AsType[*closeError](err); left {
		return errors.Join(over, unclosed)
	}
	return over
}

// runEUntil is like runE, for other signals.
func runEUntil(run func(ctx context.Context, args []string) error, signals ...os.Signal) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), signals...)
		defer stop()
		err := cmp.Or(usage.RequireFlags(cmd.Flags()), usage.RequireArguments(cmd, args))
		if err == nil {
			err = run(ctx, args)
		}
		if err != nil {
			err = stopped(ctx, err)
		}
		if err != nil {
			err = exit.With(exit.StatusOf(err), err)
		}
		return err
	}
}

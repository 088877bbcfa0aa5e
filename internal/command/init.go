// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"syscall"

	"github.com/consort-go/consort/internal/command/setup"
	"github.com/spf13/cobra"
)

func initCommand(p *program) *cobra.Command {
	var o setup.Options
	cmd := p.withPlain(&cobra.Command{
		Use:   "init",
		Short: "Ask a few questions and write a configuration",
		Long: "Init asks for the model, the variable with its key, and which MCP servers to take over\n" +
			"from Claude Desktop, Claude Code, Cursor, VS Code, Windsurf and Gemini CLI on this\n" +
			"machine. It writes a configuration with comments, which only its owner can read.",
		Example: "  consort init\n  consort init --yes --model claude-sonnet-5 --import none --output consort.toml",
		Args:    cobra.NoArgs,
		// Nothing needs to be closed, so Ctrl-C ends the process at once.
		RunE: runEUntil(func(ctx context.Context, _ []string) error {
			o.Model, o.BaseURL = p.location.Config.Model, p.location.Config.BaseURL
			return setup.Run(ctx, o, p.stdin, p.screen)
		}, syscall.SIGTERM, syscall.SIGHUP),
	})
	flags := cmd.Flags()
	flags.StringVarP(&o.Output, "output", "o", "", "write to `FILE` (default: asked for, or consort.toml with --yes)")
	flags.BoolVar(&o.Force, "force", false, "replace the file if it exists")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "ask nothing and take the defaults")
	flags.StringSliceVar(&o.Import, "import", nil, "take over the `SERVERS` of other programs: all, none, or their names (default: asked for, or all with --yes)")
	return cmd
}

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/reload"
	"github.com/spf13/cobra"
)

// reloadTimeout bounds the wait for all processes. They connect to new servers meanwhile.
const reloadTimeout = 10 * time.Minute

func reloadCommand(p *program) *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "reload",
		Short: "Make consort serve and worker read their configuration again",
		Long: "Reload makes the running processes of consort serve and consort worker that have this\n" +
			"configuration file, and the same user, read it again, and prints what has changed. If the file is\n" +
			"wrong, they keep what they have, and the status is 2.",
		Example: "  consort reload\n  consort reload --config /etc/consort/consort.toml",
		Args:    cobra.NoArgs,
		RunE:    runE(func(ctx context.Context, _ []string) error { return runReload(ctx, p) }),
	}, "print what has changed as JSON")
}

// reloaded is the JSON form of what consort reload has done.
type reloaded struct {
	Processes []reload.Outcome `json:"processes"`
}

func runReload(ctx context.Context, p *program) error {
	folder, err := histories.RunFolder()
	if err != nil {
		return exit.Usagef("there is no place for the sockets of running processes: %w; set HOME or XDG_STATE_HOME", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	file := p.location.Config.Find()
	outcomes, silent := reload.Ask(ctx, folder, file)
	if silent == nil && len(outcomes) == 0 {
		return fmt.Errorf("no consort serve or worker of this user runs with %s; name its configuration with --config FILE", cmp.Or(file, "a configuration of this folder"))
	}
	if p.json && len(outcomes) > 0 {
		err = p.screen.PrintDocument(reloaded{outcomes})
	}
	err = errors.Join(err, silent)
	for _, o := range outcomes {
		switch {
		case o.Error != "":
			err = errors.Join(err, exit.Usagef("process %d keeps its configuration: %s", o.Process, o.Error))
		case !p.json:
			p.screen.Print(o.Text())
		}
	}
	return err
}

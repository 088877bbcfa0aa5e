// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	configserve "github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/gateway"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

// withEngines adds a flag for the address of each engine, and the engine's own flags, to a
// command. The map holds the addresses by engine name.
func withEngines(p *program, cmd *cobra.Command) map[string]*string {
	addresses := map[string]*string{}
	names := []string{gateway.Temporal}
	for _, e := range p.engines {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
		if e.Flags != nil {
			e.Flags(cmd.Flags())
		}
	}
	for _, name := range names {
		addresses[name] = cmd.Flags().String(name, "", "the `ADDRESS` of the "+name+" server, such as 127.0.0.1:7233")
	}
	return addresses
}

func workerCommand(p *program) *cobra.Command {
	var addresses map[string]*string
	cmd := p.withHistory(&cobra.Command{
		Use:   "worker",
		Short: "Run the conversations of consort serve --engine",
		Long: "Worker runs the conversations of consort serve --engine NAME with the tools and the\n" +
			"model of the configuration. Any number of workers can share the conversations. A\n" +
			"signal ends a worker; the others continue its unfinished conversations. SIGHUP,\n" +
			"consort reload, or a change of the configuration file make it read the file again.",
		Example: "  consort worker --temporal 127.0.0.1:7233",
		Args:    cobra.NoArgs,
		RunE:    runEUntil(func(ctx context.Context, _ []string) error { return runWorker(ctx, p, addresses) }, os.Interrupt, syscall.SIGTERM),
	})
	addresses = withEngines(p, cmd)
	return cmd
}

func runWorker(ctx context.Context, p *program, addresses map[string]*string) (err error) {
	var named []string
	for name, address := range addresses {
		if *address != "" {
			named = append(named, name)
		}
	}
	if len(named) != 1 {
		return exit.Usagef("name one engine and the address of its server, such as --temporal 127.0.0.1:7233")
	}
	e, err := gateway.EngineNamed(p.engines, named[0])
	if err != nil {
		return err
	}
	again := p.prepareReload()
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if !cfg.Keeps() {
		return p.location.NoStore()
	}
	p.needs.telemetry, p.needs.replaceable, p.needs.forClients = true, true, true
	assembly, err := p.withModel(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	store, err := assembly.History(ctx)
	if err != nil {
		return p.location.OpenError(err)
	}
	running := *cfg
	running.Serve = &configserve.Options{Converse: true} // conversations need the model
	if cfg.Serve != nil {
		running.Serve.NoWatch = cfg.Serve.NoWatch
	}
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	defer gateway.FollowReloads(ctx, gateway.Options{
		Config: &running, Assembly: assembly, Location: &p.location, Reload: again, Screen: p.screen, Stdin: p.stdin,
	}, hangUp)()
	address := *addresses[e.Name]
	err = e.Work(ctx, address, gateway.NewParts(assembly, histories.ClientsOnly{Store: store}), func() { p.screen.Note("working for %s at %s", e.Name, address) })
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return nil
}

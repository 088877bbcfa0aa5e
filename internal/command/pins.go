// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func pinsCommand(p *program) *cobra.Command {
	cmd := p.withJSON(&cobra.Command{
		Use:   "pins",
		Short: "List the pinned tools, and the changes of those that differ",
		Args:  cobra.NoArgs,
		RunE:  runE(func(context.Context, []string) error { return runPins(p) }),
	}, "print one JSON document")
	cmd.AddCommand(p.withJSON(&cobra.Command{
		Use:   "accept [ENSEMBLE [TOOL]]",
		Short: "Accept changed tools, and show the changes",
		Long: "Accept pins TOOL as it was last listed; without TOOL, all changed tools of\n" +
			"ENSEMBLE; without arguments, those of all servers. It shows the accepted\n" +
			"changes. To see them first: consort pins",
		Example: "  consort pins accept files read_file",
		Args:    cobra.MaximumNArgs(2),
		RunE:    runE(func(_ context.Context, args []string) error { return runAcceptPins(p, args) }),
	}, "print one JSON document"))
	return cmd
}

// pinned is a server with pins.
type pinned struct {
	server string
	file   *pins.File
}

// pins lists the pins. It connects to no server.
func runPins(p *program) error {
	servers, err := pinnedServers(p)
	if err != nil {
		return err
	}
	list := reports.PinList{Pins: []reports.Pin{}}
	for _, s := range servers {
		entries, err := s.entries()
		if err != nil {
			return err
		}
		list.Add(s.file.Path(), entries)
	}
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.Text(p.screen.Results))
	return p.screen.Err()
}

func runAcceptPins(p *program, args []string) error {
	servers, err := pinnedServers(p)
	if err != nil {
		return err
	}
	tool := ""
	if len(args) > 0 {
		if servers, err = pinnedNamed(p, servers, args[0]); err != nil {
			return err
		}
	}
	if len(args) > 1 {
		if tool = args[1]; !servers[0].has(tool) {
			return exit.Usagef("there is no tool %q among the pins of %q; consort pins lists them", tool, args[0])
		}
	}
	list := reports.PinList{Pins: []reports.Pin{}}
	for _, s := range servers {
		accepted, err := s.file.Accept(s.server, tool)
		if err != nil {
			return err
		}
		list.Add(s.file.Path(), accepted)
	}
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.AcceptedText(p.screen.Results))
	return p.screen.Err()
}

// pinnedServers returns the servers that have pins, sorted by name.
func pinnedServers(p *program) ([]pinned, error) {
	cfg, err := p.load()
	if err != nil {
		return nil, err
	}
	var servers []pinned
	kept := cfg.Supervised()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		path := kept[name].Pin.Reveal()
		if path == "" {
			continue
		}
		file, err := pins.Open(path)
		if err != nil {
			table := "mcp"
			if cfg.GRPC[name] != nil {
				table = "grpc"
			}
			return nil, exit.Usagef("%s: %s.%s.pin: %w", cmp.Or(kept[name].Origin, p.location.Name()), table, name, err)
		}
		servers = append(servers, pinned{name, file})
	}
	if len(servers) == 0 {
		return nil, exit.Usagef("no server of %s has pins; to pin the tools of a server, add to its table, for example, pin = \"tools.pins.json\"", p.location.Name())
	}
	return servers, nil
}

func pinnedNamed(p *program, servers []pinned, name string) ([]pinned, error) {
	var names []string
	for _, s := range servers {
		if s.server == name {
			return []pinned{s}, nil
		}
		names = append(names, s.server)
	}
	return nil, exit.Usagef("there is no ensemble %q with pins; %s has %s", name, p.location.Name(), strings.Join(names, ", "))
}

// entries returns the entries of this server; other servers may share the file.
func (s *pinned) entries() ([]pins.Entry, error) {
	entries, err := s.file.Entries()
	return slices.DeleteFunc(entries, func(e pins.Entry) bool { return e.Ensemble != s.server }), err
}

func (s *pinned) has(tool string) bool {
	entries, err := s.entries()
	return err != nil || slices.ContainsFunc(entries, func(e pins.Entry) bool { return e.Tool == tool })
}

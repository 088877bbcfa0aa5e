// SPDX-License-Identifier: Apache-2.0

// Package pinned finds the servers of a configuration whose tools are pinned, lists their
// pins and accepts changed tools. It connects to no server.
package pinned

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
)

// Servers are the servers of a configuration that have pins.
type Servers struct {
	config string
	all    []server // sorted by name
}

// server is a server with pins.
type server struct {
	name string
	file *pins.File
}

// Open opens the files with the pins of a configuration, which was read from file. It is a
// usage error if no server has pins.
func Open(file string, cfg *config.Config) (*Servers, error) {
	servers := &Servers{config: file}
	kept := cfg.Supervised()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		path := kept[name].Pin.Reveal()
		if path == "" {
			continue
		}
		pinned, err := pins.Open(path)
		if err != nil {
			table := "mcp"
			if cfg.GRPC[name] != nil {
				table = "grpc"
			}
			return nil, exit.Usagef("%s: %s.%s.pin: %w", cmp.Or(kept[name].Origin, file), table, name, err)
		}
		servers.all = append(servers.all, server{name, pinned})
	}
	if len(servers.all) == 0 {
		return nil, exit.Usagef("no server of %s has pins; to pin the tools of a server, add to its table, for example, pin = \"tools.pins.json\"", file)
	}
	return servers, nil
}

// List returns the pins of all servers.
func (s *Servers) List() (*reports.PinList, error) {
	list := &reports.PinList{Pins: []reports.Pin{}}
	for _, one := range s.all {
		entries, err := one.entries()
		if err != nil {
			return nil, err
		}
		list.Add(one.file.Path(), entries)
	}
	return list, nil
}

// Accept pins tools as they were last listed, and returns those that had changed. Which is
// [ENSEMBLE [TOOL [FINGERPRINT]]]; without it, all are accepted.
func (s *Servers) Accept(which []string) (_ *reports.PinList, err error) {
	servers, tool, fingerprint := s.all, "", ""
	if len(which) > 0 {
		if servers, err = s.named(which[0]); err != nil {
			return nil, err
		}
	}
	if len(which) > 1 {
		if tool = which[1]; !servers[0].has(tool) {
			return nil, exit.Usagef("there is no tool %q among the pins of %q; consort pins lists them", tool, which[0])
		}
	}
	if len(which) > 2 {
		fingerprint = which[2]
	}
	list := &reports.PinList{Pins: []reports.Pin{}}
	for _, one := range servers {
		accepted, err := one.file.Accept(one.name, tool, fingerprint)
		if err != nil {
			return nil, err
		}
		list.Add(one.file.Path(), accepted)
	}
	return list, nil
}

func (s *Servers) named(name string) ([]server, error) {
	var names []string
	for _, one := range s.all {
		if one.name == name {
			return []server{one}, nil
		}
		names = append(names, one.name)
	}
	return nil, exit.Usagef("there is no ensemble %q with pins; %s has %s", name, s.config, strings.Join(names, ", "))
}

// entries returns the entries of this server; other servers may share the file.
func (s *server) entries() ([]pins.Entry, error) {
	entries, err := s.file.Entries()
	return slices.DeleteFunc(entries, func(e pins.Entry) bool { return e.Ensemble != s.name }), err
}

func (s *server) has(tool string) bool {
	entries, err := s.entries()
	return err != nil || slices.ContainsFunc(entries, func(e pins.Entry) bool { return e.Tool == tool })
}

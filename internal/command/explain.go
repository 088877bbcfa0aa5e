// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/command/named"
	"github.com/consort-go/consort/internal/exit"
)

// explain prints whether a client of consort serve may use a tool, prompt or resource, and
// why.
func (s *serving) explain(ctx context.Context, p *program, client, values string, args []string) (err error) {
	if len(args) != 1 {
		return exit.Usagef("--explain CLIENT needs the name of a tool or prompt, or the URI of a resource")
	}
	var trusted map[string]any
	if values != "" {
		if err := json.Unmarshal([]byte(values), &trusted); err != nil || trusted == nil {
			return exit.Usagef(`--trusted: expected the trusted values of the client as a JSON object, such as '{"roles": ["ops"]}'`)
		}
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if _, _, err := cfg.Explain(client, trusted, ensemble.Item{}); err != nil {
		return exit.Usagef("--explain: %s", err)
	}
	p.needs.quiet = config.LevelError
	assembly, err := assembleForTools(p, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	connecting := p.screen.Begin("connecting")
	items, err := named.Items(ctx, assembly.Roster, args[0], s.converse || cfg.Serve != nil && cfg.Serve.Converse)
	connecting.End()
	if err != nil {
		return err
	}
	who := fmt.Sprintf("the client %q", client)
	if client == "" {
		who = "a client without a name"
	}
	for _, item := range items {
		allowed, why, _ := cfg.Explain(client, trusted, item)
		of := ""
		if item.Ensemble != "" {
			of = " of " + item.Ensemble
		}
		p.screen.Print(fmt.Sprintf("%s %s use the %s %s%s: %s\n", who, map[bool]string{true: "may", false: "may not"}[allowed], item.Kind, item.Name, of, why))
	}
	return p.screen.Err()
}

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
)

// watchEvery is the interval of check --watch.
const watchEvery = time.Second

// runWatch shows the servers' health until it is interrupted. Each iteration also uses the
// roster, which reconnects lost servers.
func runWatch(ctx context.Context, p *program) (err error) {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	assembly, err := assembleForTools(p, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	connect(ctx, p, assembly.Roster)
	show := healthShower(p)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		show(assembly.Roster.Health())
		if err := p.screen.Err(); err != nil {
			return err
		}
		_, _ = assembly.Roster.Catalog(ctx) // the next iteration shows the outcome
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// healthShower returns a function that shows one state of health: as a line of JSON, as a
// table that replaces the previous one on a terminal, and otherwise as a line for each
// change of state.
func healthShower(p *program) func(ensemble.Health) {
	switch {
	case p.json:
		return func(h ensemble.Health) {
			line, err := json.Marshal(h)
			if err != nil { // a Health has only plain values
				panic(err)
			}
			p.screen.PrintJSON(string(line) + "\n")
		}
	case terminal.IsTerminal(p.screen.Stdout):
		return func(h ensemble.Health) {
			p.screen.Print("\x1b[H" + terminal.EraseBelow + reports.HealthTable(h, p.screen.Results) + "\nCtrl-C ends this.\n")
		}
	}
	states := map[string]ensemble.State{}
	return func(h ensemble.Health) {
		for _, e := range h.Ensembles {
			if states[e.Name] == e.State {
				continue
			}
			states[e.Name] = e.State
			p.screen.Print(strings.TrimSpace(fmt.Sprintf("%s %s %s %s",
				h.Time.Format(time.TimeOnly), display.Text(e.Name), e.State, reports.Trouble(e))) + "\n")
		}
	}
}

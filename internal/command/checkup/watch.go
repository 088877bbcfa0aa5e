// SPDX-License-Identifier: Apache-2.0

package checkup

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

// watchEvery is the interval of Watch.
const watchEvery = time.Second

// Watch shows the servers' health until ctx is done, as lines of JSON if inJSON is set. Each iteration also uses the
// roster, which reconnects lost servers.
func (c *Checkup) Watch(ctx context.Context, inJSON bool) (err error) {
	assembly, err := c.program.AssembleForTools(c.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.program.Close(assembly)) }()
	c.connect(ctx, assembly.Roster)
	show := showHealth(c.screen, inJSON)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		show(assembly.Roster.Health())
		if err := c.screen.Err(); err != nil {
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

// showHealth returns a function that shows one state of health: as a line of JSON, as a
// table that replaces the previous one on a terminal, and otherwise as a line for each
// change of state.
func showHealth(screen *terminal.Screen, inJSON bool) func(ensemble.Health) {
	switch {
	case inJSON:
		return func(h ensemble.Health) {
			line, err := json.Marshal(h)
			if err != nil { // a Health has only plain values
				panic(err)
			}
			screen.PrintJSON(string(line) + "\n")
		}
	case terminal.IsTerminal(screen.Stdout):
		return func(h ensemble.Health) {
			screen.Print("\x1b[H" + terminal.EraseBelow + reports.HealthTable(h, screen.Results) + "\nCtrl-C ends this.\n")
		}
	}
	seen := map[string]ensemble.EnsembleHealth{}
	return func(h ensemble.Health) {
		for _, e := range h.Ensembles {
			before := seen[e.Name]
			seen[e.Name] = e
			if lost := e; e.Restarts > before.Restarts && before.State == ensemble.Ready { // between two iterations
				lost.State, before.State = ensemble.Lost, ensemble.Lost
				screen.Print(healthLine(h.Time, lost))
			}
			if e.State != before.State {
				screen.Print(healthLine(h.Time, e))
			}
		}
	}
}

// healthLine renders one state of a server.
func healthLine(at time.Time, e ensemble.EnsembleHealth) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", at.Format(time.TimeOnly), display.Text(e.Name), e.State, reports.Trouble(e))) + "\n"
}

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/terminal"
)

// renderer returns a renderer: lines of JSON if requested, and otherwise a view for people.
func (p *program) renderer() terminal.Renderer {
	if p.json {
		return &terminal.JSONLines{Screen: p.screen}
	}
	if p.view != nil {
		return p.view
	}
	return terminal.NewView(p.screen)
}

// session returns what sessions need of the program.
func (p *program) session() session.Program {
	return session.Program{
		Screen: p.screen, Location: &p.location, JSON: p.json, Approver: p.approver,
		Renderer: p.renderer, ShowTrace: p.showTrace,
	}
}

// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/linediff"
	"github.com/consort-go/consort/internal/rendering"
)

// pinsPage shows the pinned tools whose definition has changed, with the difference.
func (c toolPages) pinsPage(w http.ResponseWriter, r *http.Request, p *person) {
	var pending []part
	pinned := 0
	files, err := c.console.Pins()
	for _, file := range files {
		all, failed := file.Entries()
		err = cmp.Or(err, failed)
		for i := range all {
			if pinned++; all[i].Pending != nil {
				pending = append(pending, c.pendingPin(p, &all[i]))
			}
		}
	}
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	c.console.show(w, r, p, "Pins",
		el("h1", text("Pins")),
		el("p", text("A pinned tool whose definition has changed is not offered to models, or with a warning, until a person accepts the change.")),
		when(pinned == 0, el("p", text("No tool is pinned."))),
		when(pinned > 0 && len(pending) == 0, el("p", text("Each pinned tool is as it was accepted."))),
		group(pending...))
}

func (c toolPages) pendingPin(p *person, e *pins.Entry) part {
	var changes []part
	for _, change := range e.Changes() {
		before, after := c.console.Redact(change.Before), c.console.Redact(change.After)
		changes = append(changes, el("h3", text(change.Part)), diffRows(rendering.Comparison(diffStyle, linediff.Lines(before, after))),
			maskNote(change.Before+change.After, before+after))
	}
	title := e.Tool
	if e.IsNew() {
		title += " (new)"
	}
	return el("article", class("wait"), el("h2", text(e.Ensemble+": "+title)),
		el("p", class("faint"), text("seen "), moment(e.Pending.Seen)), group(changes...),
		when(p.Role.May(Operate), c.console.form(p, "/pins", hidden("ensemble", e.Ensemble), hidden("tool", e.Tool), hidden("fingerprint", e.Pending.Fingerprint),
			el("button", attr("aria-label", "Accept the change of "+c.console.Redact(e.Tool)), text("Accept the change")))))
}

// acceptPin accepts a change if it is still the one that the page showed. It does not start a server
// that is parked.
func (c toolPages) acceptPin(w http.ResponseWriter, r *http.Request, p *person) {
	server, tool, shown := r.PostForm.Get("ensemble"), r.PostForm.Get("tool"), r.PostForm.Get("fingerprint")
	err := c.accept(server, tool, shown)
	if err == nil && c.console.Roster != nil {
		if e, ok := c.console.Roster.Ensemble(server); ok {
			_ = e.Refresh(r.Context()) // at the next listing otherwise
		}
	}
	c.console.record(r, p, "accept_pin", "", err, "ensemble", server, "tool", tool, "fingerprint", shown)
	c.console.back(w, r, p, "/pins", tool+" is accepted.", err)
}

// accept accepts the definition of a tool that has a fingerprint.
func (c toolPages) accept(server, tool, fingerprint string) error {
	if server == "" || tool == "" || fingerprint == "" {
		return errors.New("the form does not say which definition of which tool is accepted: load the page of the pins again")
	}
	files, err := c.console.Pins()
	if err != nil {
		return err
	}
	for _, file := range files {
		all, err := file.Entries()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(e pins.Entry) bool { return e.Ensemble == server && e.Tool == tool }) {
			_, err = file.Accept(server, tool, fingerprint)
			return err
		}
	}
	return fmt.Errorf("the tool %q of %q is not pinned", tool, server)
}

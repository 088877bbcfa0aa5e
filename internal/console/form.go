// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/internal/histories"
)

// formID is the field with the ID of a form that must not take effect twice.
const formID = "form_id"

// written is the form of a message: its ID, and the text that could not be sent before.
type written struct{ id, message string }

// writtenIn returns the form of a page. If the request has tried to send the form, it is the same form again.
func (clean cleaner) writtenIn(r *http.Request) written {
	return written{cmp.Or(r.PostForm.Get(formID), rand.Text()), clean.unlessSecret(r.PostForm.Get("message"))}
}

// messageForm returns a form that sends a message to a path below [Prefix].
func (c conversationPages) messageForm(p *person, to string, with written) part {
	return c.console.form(p, to, class("stack"), hidden(formID, with.id), area("message", "Message", with.message, attr("required", "")), el("button", text("Send")))
}

// hidden returns a hidden field.
func hidden(name, value string) part {
	return el("input", attr("type", "hidden"), attr("name", name), attr("value", value))
}

// sentForm is a form that a session has sent.
type sentForm struct {
	key digest // of the form and its text
	// id is what the form makes: the ID of the message, and of a conversation that begins with it.
	id string

	mu     sync.Mutex // held while it is sent
	isSent bool
}

// maxForms is how many sent forms a session remembers.
const maxForms = 100

// formOf returns the form of a request. One that was sent before with the same texts, by a second click or
// again after an error, is the same.
func (s *sessions) formOf(of *session, r *http.Request, texts ...string) *sentForm {
	form := &sentForm{id: histories.NewID()}
	named := r.PostForm.Get(formID)
	if named == "" {
		return form
	}
	form.key = sha256.Sum256([]byte(strings.Join(append(texts, r.URL.Path, named), "\x00")))
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(of.forms, func(one *sentForm) bool { return one.key == form.key }); at >= 0 {
		return of.forms[at]
	}
	if of.forms = append(of.forms, form); len(of.forms) > maxForms {
		of.forms = of.forms[1:]
	}
	return form
}

// send sends the message of a form, unless it was sent already.
func (f *sentForm) send(message string, send func(canister.User) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isSent {
		return nil
	}
	err := send(canister.User{Head: canister.Head{ID: f.id, Time: time.Now()}, Content: canister.Texts(message)})
	f.isSent = err == nil || errors.Is(err, engine.ErrKept)
	return err
}

// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/login"
)

// LoginList is the JSON output of consort logins.
type LoginList struct {
	Logins []Login `json:"logins"`
}

// The states of a login.
const (
	LoggedIn    = "logged in"
	NeedsLogin  = "needs login"
	LogsInAlone = "logs in by itself"
)

// Login is a server with a login, or a stored login of another configuration.
type Login struct {
	Server  string    `json:"server,omitempty"` // empty for another configuration
	Client  string    `json:"client,omitempty"` // the identity of a client of the gateway
	URL     string    `json:"url"`
	State   string    `json:"state"`
	Issuer  string    `json:"issuer,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // absent if it is renewed by itself
	Ended   string    `json:"ended,omitempty"`  // why
}

// NewLoginList returns an empty list.
func NewLoginList() *LoginList { return &LoginList{Logins: []Login{}} }

// Add adds a server and its stored login, which may be nil.
func (l *LoginList) Add(server string, options *login.Options, stored *login.Login) {
	one := Login{Server: server, URL: redact.URI(options.URL), State: NeedsLogin}
	switch {
	case options.Machine:
		one.State = LogsInAlone
	case stored != nil && stored.Lasts():
		one.State = LoggedIn
	}
	if stored != nil {
		one.Client = stored.Identity
		one.Issuer, one.Scopes, one.Since, one.Ended = stored.Issuer, stored.Scopes, stored.Since, stored.Ended
		if stored.RefreshToken == "" {
			one.Expires = stored.Expiry
		}
	}
	l.Logins = append(l.Logins, one)
}

// Text renders the list for people. Hint returns how to log in at a server.
func (l *LoginList) Text(paint terminal.Palette, hint func(server string) string) string {
	if len(l.Logins) == 0 {
		return "no server needs a login\n"
	}
	var rows [][]string
	for _, one := range l.Logins {
		rows = append(rows, []string{display.Line(cmp.Or(one.Server, "(another file)")), one.State, display.Line(one.URL), one.remark(hint)})
	}
	return terminal.Table(rows, func(_, column int, cell string) string {
		switch {
		case column == 0:
			return paint.Name(cell)
		case cell == NeedsLogin:
			return paint.Bad(cell)
		case cell == LoggedIn:
			return paint.Good(cell)
		case column == 3:
			return paint.Faint(cell)
		}
		return cell
	})
}

func (l *Login) remark(hint func(string) string) string {
	if l.Client == "" {
		return l.lasts(hint)
	}
	const short = 8 // consort logout takes the beginning of an ID
	return strings.TrimSuffix("client "+display.Line(textcut.Prefix(l.Client, short))+" of the gateway, "+l.lasts(hint), ", ")
}

func (l *Login) lasts(hint func(string) string) string {
	switch {
	case l.Ended != "":
		return "the authorization server ended it: " + display.Line(l.Ended)
	case l.State == NeedsLogin && l.Server != "" && l.Client == "":
		return display.Text(hint(l.Server))
	case !l.Expires.IsZero():
		return "until " + l.Expires.Local().Format(time.DateTime)
	case !l.Since.IsZero():
		return "since " + l.Since.Local().Format(time.DateOnly)
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

// Package logins opens and lists the logins at servers that a person has stored.
package logins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/keyring"
	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/loginrecords"
	"github.com/consort-go/consort/internal/records"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/mcpadapter/login"
)

// KeyVariable names the environment variable with the key of the stored logins.
const KeyVariable = "CONSORT_LOGIN_KEY"

// Logins are the logins of a configuration.
type Logins struct {
	Config *config.Config
	File   string // the name of the configuration, for messages
	Note   func(text string)
	// History returns the conversation store, for logins that are in it.
	History func(context.Context) (history.Store, error)
}

// inHistory reports whether the logins are in the conversation store.
func (l *Logins) inHistory() bool {
	h, where := l.Config.History, l.Config.Logins.Store
	return h != nil && (where == "history" || where == "" && h.Store == config.StorePostgres)
}

// table returns the records of the conversation store.
func (l *Logins) table(ctx context.Context) (records.Table, error) {
	store, err := l.History(ctx)
	if err != nil {
		return nil, fmt.Errorf("the logins are in the conversation store, which cannot be opened: %w", err)
	}
	keeper, ok := store.(interface{ Records() records.Table })
	if !ok {
		return nil, errors.New("the conversation store cannot have logins: set [logins] store = \"files\"")
	}
	return keeper.Records(), nil
}

// Check returns an error if the logins are in the conversation store, and cannot be used there:
// several machines need the same key.
func Check(ctx context.Context, store login.Store) error {
	shared, ok := store.(*loginrecords.Store)
	if !ok {
		return nil
	}
	if err := shared.Check(ctx); err != nil {
		return exit.With(histories.StatusOf(err), err)
	}
	return nil
}

// Open returns the stored logins.
func (l *Logins) Open() (login.Store, error) {
	folder, err := histories.StateFile("logins")
	if err != nil {
		return nil, exit.Usagef("there is no place for stored logins: %w; set HOME or XDG_STATE_HOME", err)
	}
	key, err := l.key(folder)
	if err != nil {
		return nil, err
	}
	if l.inHistory() {
		return loginrecords.New(l.table, key, l.Config.Logins.Scope), nil
	}
	if scope := l.Config.Logins.Scope; scope != "" { // the key is that of all scopes
		folder = filepath.Join(folder, loginkey.Name(scope))
	}
	return login.NewFiles(folder, key), nil
}

// key returns the key of the logins in a folder: from the variable, or from the place
// that [logins] names.
func (l *Logins) key(folder string) (func() ([]byte, error), error) {
	if text := os.Getenv(KeyVariable); text != "" {
		key, err := login.KeyFromText(text)
		if err != nil {
			return nil, exit.Usagef("%s: %w", KeyVariable, err)
		}
		return func() ([]byte, error) { return key, nil }, nil
	}
	file := filepath.Join(folder, "key")
	key := &loginkey.Key{File: file, Keyring: keyring.New(file), Place: loginkey.Place(l.Config.Logins.Key), Note: l.Note}
	return key.Bytes, nil
}

// CanStore reports why a login could not be stored, before the person logs in.
func (l *Logins) CanStore(ctx context.Context) error {
	if l.inHistory() {
		store, err := l.Open()
		if err != nil {
			return err
		}
		return Check(ctx, store)
	}
	folder, err := histories.StateFile("logins")
	if err != nil {
		return nil // Open says so
	}
	key, err := l.key(folder)
	if err != nil {
		return err
	}
	_, err = key()
	return err
}

// Hint tells a person how to log in at a server of a configuration.
func Hint(at *histories.Location, server string) string {
	return "type: " + at.CommandLine("login "+display.Word(server))
}

// Text lists the servers that have a login.
func (l *Logins) Text() string {
	names := l.Names()
	if len(names) == 0 {
		return l.File + " has none: a server gets one with a table such as [mcp.linear.oauth]"
	}
	return l.File + " has " + strings.Join(names, ", ")
}

// Names returns the servers that have a login, sorted.
func (l *Logins) Names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l.Config.MCP)) {
		if s := l.Config.MCP[name]; s != nil && s.OAuth != nil {
			names = append(names, name)
		}
	}
	return names
}

// ArePersonal reports whether a person logs in at a server.
func (l *Logins) ArePersonal() bool {
	return slices.ContainsFunc(l.Names(), func(name string) bool { return l.Config.MCP[name].OAuth.StoresLogins() })
}

// Clients returns the identities of the clients of the gateway that have a login at a server, and
// whose ID begins with prefix. If some logins cannot be read, it returns the others and an error.
func Clients(ctx context.Context, o *login.Options, prefix string) ([]string, error) {
	all, err := o.Store.List(ctx)
	var found []string
	for _, l := range all {
		if l.Resource == o.Resource() && l.Identity != "" && strings.HasPrefix(l.Identity, prefix) {
			found = append(found, l.Identity)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// List returns the servers that have a login, and the stored logins of other configurations.
// The error unreadable is about logins that could not be read.
func (l *Logins) List(ctx context.Context, store login.Store) (list *reports.LoginList, unreadable, err error) {
	list = reports.NewLoginList()
	stored, unreadable := store.List(ctx)
	servers := map[string]string{} // by resource
	for _, name := range l.Names() {
		options := l.Config.MCP[name].LoginOptions()
		options.Store, servers[options.Resource()] = store, name
		client, err := login.New(options)
		if err != nil {
			return nil, nil, exit.Usagef("%s: mcp.%s.oauth: %w", l.File, name, err)
		}
		found, _ := client.Stored(ctx) // unreadable says why
		_ = client.Close()
		list.Add(name, options, found)
		if found != nil {
			stored = slices.DeleteFunc(stored, func(other *login.Login) bool { return other.Key == found.Key })
		}
	}
	for _, other := range stored {
		server := ""
		if other.Identity != "" { // of a client of the gateway
			server = servers[other.Resource]
		}
		list.Add(server, &login.Options{URL: other.Resource}, other)
	}
	return list, unreadable, nil
}

// Lasts says how long a login lasts.
func Lasts(l *login.Login) string {
	switch {
	case l.RefreshToken != "":
		return "it is renewed by itself"
	case l.Expiry.IsZero():
		return "it lasts until the server ends it"
	}
	return "it ends on " + l.Expiry.Local().Format(time.DateTime) + ", because the authorization server lets nobody renew it"
}

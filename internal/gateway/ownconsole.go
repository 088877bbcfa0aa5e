// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/rand"
	"slices"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/exit"
)

// OwnConsole is the console of the person who started the process.
type OwnConsole struct {
	// Token is one that the settings of the server accept, and only this process knows.
	Token string
	// Open is called with the address of a page that logs its first visitor in.
	Open func(address string)
}

// NewOwnConsole returns a console at an address of this machine, and the settings of a
// server that only this console uses. The clients of the configuration stay, because their
// conversations may continue.
func NewOwnConsole(cfg *config.Config, address string) (*OwnConsole, *serve.Options, error) {
	settings := &serve.Options{}
	if cfg.Serve != nil {
		*settings = *cfg.Serve
	}
	settings.HTTP, settings.HTTPTLS, settings.GRPC, settings.GRPCTLS, settings.Health = values.Plain(address), serve.TLS{}, values.Value{}, serve.TLS{}, values.Value{}
	settings.OIDC, settings.ResourceMetadata, settings.Stateless, settings.Open = nil, nil, false, false
	settings.Hosts, settings.Origins, settings.Rate, settings.Burst = nil, nil, 0, 0
	settings.Converse = cfg.Model != nil
	settings.NoAccessLog = true
	if err := (&serve.Options{}).MayListen(address); err != nil {
		return nil, nil, exit.Usagef("--http %s: the console is for this machine only; use a loopback address, such as 127.0.0.1:0", address)
	}
	if old := settings.Token; old.Reveal() != "" {
		settings.Clients = []serve.Client{{Token: old}}
	}
	settings.Token = values.Value{}
	c := &OwnConsole{Token: rand.Text() + rand.Text()}
	byToken := slices.DeleteFunc(slices.Clone(settings.Clients), func(c serve.Client) bool { return c.Certificate != "" })
	settings.Clients = append(byToken, serve.Client{Token: values.Plain(c.Token), Name: "console"})
	return c, settings, nil
}

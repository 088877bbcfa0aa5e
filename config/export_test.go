// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"strings"

	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Grammar returns each key of a configuration, and of a file that is imported,
// with its kind, for the test of the reference.
func Grammar() map[string]string {
	kinds := map[string]string{}
	var s *hostServer
	for _, key := range keysOf(Keys(), "mcpServers.NAME.", foreignServer(&s).Fields) {
		kinds[key.Path] = strings.TrimPrefix(strings.TrimPrefix(key.Kind, "an "), "a ")
	}
	return kinds
}

// Redact returns the function that redacts the health of the server.
func (s *Server) Redact(redact func(string) string) func(string) string {
	return s.options(&AssembleOptions{redact: redact}).Redact
}

func (s *Server) EnsembleOptions() *ensemble.Options { return s.options(&AssembleOptions{}) }

func (s *GRPCServer) EnsembleOptions() *ensemble.Options { return s.options(&AssembleOptions{}) }

func (s *Supervision) Screen(name string, redact func(string) string) (func([]*invoker.Definition) map[string]error, error) {
	return s.screen(name, &AssembleOptions{redact: redact, pinned: map[string]*pins.File{}})
}

// SignIn begins a login at the issuer of the tokens of a gateway.
func SignIn(ctx context.Context, resource string, issuer *serve.OIDC, callback string) (*login.Redirect, error) {
	a := &Assembly{issuer: issuer, Serve: &mcpserver.Options{ResourceMetadata: &mcpserver.ResourceMetadata{Resource: resource}}}
	return a.signIn(ctx, callback)
}

func (a *Assembly) Former() int { return len(a.former) }

func (a *Assembly) AddressOf(e *ensemble.Ensemble) (string, bool) { return a.addressOf(e) }

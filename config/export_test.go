// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/invoker"
)

// Grammar returns each key of a configuration, and of a file that is imported,
// with its kind, for the test of the reference.
func Grammar() map[string]string {
	kinds := map[string]string{}
	collect(kinds, "", new(Config).fields())
	var s *hostServer
	collect(kinds, "mcpServers.NAME.", foreignServer(&s).fields)
	return kinds
}

func collect(kinds map[string]string, prefix string, fields []field) {
	for _, f := range fields {
		kinds[prefix+f.key] = strings.TrimPrefix(strings.TrimPrefix(f.kind, "an "), "a ")
		collect(kinds, prefix+f.key+f.within+".", f.fields)
	}
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

// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
)

// mayServe returns an error if [serve] must not be served at its addresses, or has keys that
// have no effect there.
func (o *Options) mayServe(cfg *config.Config) error {
	if err := mayListen(cfg.Serve); err != nil {
		return err
	}
	return o.haveEffect(cfg, cfg.Serve)
}

// mayListen returns an error if [serve] must not be served at its addresses.
func mayListen(s *serve.Options) error {
	for _, at := range []struct {
		values.Value
		may func(string) error
	}{{s.HTTP, s.MayListen}, {s.GRPC, s.MayListenGRPC}} {
		if at.Reveal() == "" {
			continue
		}
		if err := at.may(at.Reveal()); err != nil {
			return fmt.Errorf("serving at %s: %w", at.Value, err)
		}
	}
	return nil
}

// haveEffect returns an error about keys of [serve] that have no effect without an address. An
// address counts if the running process has it (cfg.Serve) or the file sets it for the next start
// (file).
func (o *Options) haveEffect(cfg *config.Config, file *serve.Options) error {
	if o.Console != nil || o.Flags["stdio"] {
		return nil // the addresses of the file are not those in use
	}
	s := cfg.Serve
	http, grpc := s.HTTP.Reveal() != "" || file.HTTP.Reveal() != "", s.GRPC.Reveal() != "" || file.GRPC.Reveal() != ""
	const needsHTTP = `only for serving over HTTP: give --http ADDRESS, or set http, such as http = "127.0.0.1:8080"`
	var errs []error
	for _, key := range []struct {
		name            string
		isSet, isServed bool
		advice          string
	}{
		{"token", s.Token.Reveal() != "", http || grpc, needsAddress},
		{"clients", len(s.Clients) > 0, http || grpc, needsAddress},
		{"oidc", s.OIDC != nil, http || grpc, needsAddress},
		{"open", s.Open, http || grpc, needsAddress},
		{"rate", s.Rate != 0, http || grpc, needsAddress},
		{"profiles", len(s.Profiles) > 0, http || grpc, needsAddress},
		{"grpc_tls", s.GRPCTLS != serve.TLS{}, grpc, `only for serving over gRPC: give --grpc ADDRESS, or set grpc, such as grpc = "127.0.0.1:50051"`},
		{"http_tls", s.HTTPTLS != serve.TLS{}, http, needsHTTP},
		{"hosts", len(s.Hosts) > 0, http, needsHTTP},
		{"origins", len(s.Origins) > 0, http, needsHTTP},
		{"max_bodies", s.MaxBodies != 0, http, needsHTTP},
		{"stateless", s.Stateless, http, needsHTTP},
		{"resource_metadata", s.ResourceMetadata != nil, http, needsHTTP},
	} {
		if key.isSet && !key.isServed {
			errs = append(errs, cfg.LocateKey("serve."+key.name, errors.New(key.advice)))
		}
	}
	return errors.Join(errs...)
}

// needsAddress is the advice about keys that have no effect over standard input and output.
const needsAddress = `only for serving over HTTP or gRPC: give --http ADDRESS or --grpc ADDRESS, or set http or grpc, such as http = "127.0.0.1:8080"; with --stdio the key is ignored`

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // a subprocess, over its standard input and output
	HTTP  Transport = "http"  // MCP's streamable HTTP
	SSE   Transport = "sse"   // HTTP with server-sent events, of protocol 2024-11-05
)

// transports are the ways to reach a server of the table mcp. Another one needs its
// source, an entry here, and its keys in serverKeys of server.go. The table grpc has its own source, in grpc.go.
var transports = []transportKind{
	{Stdio, func(s *Server, _ *AssembleOptions, client *mcpadapter.ClientOptions) (ensemble.Source, error) {
		command := make([]string, len(s.Command))
		for i, argument := range s.Command {
			command[i] = argument.Reveal()
		}
		if len(command) == 0 {
			return nil, errors.New("the server has no command")
		}
		return mcpadapter.Stdio(command, &mcpadapter.StdioOptions{
			ClientOptions: *client, Environment: reveal(s.Environment), Directory: s.Directory.Reveal(), Limits: s.Limits,
		}), nil
	}},
	{HTTP, func(s *Server, o *AssembleOptions, client *mcpadapter.ClientOptions) (ensemble.Source, error) {
		return s.overHTTP(o, client, mcpadapter.HTTP)
	}},
	{SSE, func(s *Server, o *AssembleOptions, client *mcpadapter.ClientOptions) (ensemble.Source, error) {
		return s.overHTTP(o, client, mcpadapter.SSE)
	}},
}

// transportKind is an entry of transports.
type transportKind struct {
	name   Transport
	source func(s *Server, o *AssembleOptions, client *mcpadapter.ClientOptions) (ensemble.Source, error)
}

// transportNames returns the values of the key transport.
func transportNames() []Transport {
	names := make([]Transport, len(transports))
	for i, t := range transports {
		names[i] = t.name
	}
	return names
}

// clientOptions returns the client options of the program, changed as the configuration of a server says.
func (o *AssembleOptions) clientOptions(name, protocol string, sampling, callRoots bool, roots []Root) mcpadapter.ClientOptions {
	client := o.Client
	client.Server, client.Logger, client.Protocol = name, o.Logger, protocol
	client.SampleCalls = sampling
	if client.Sample == nil { // otherwise the program decides about tools
		client.SampleTools = sampling
	}
	client.CallRoots = callRoots
	client.Roots = rootsOf(roots, client.Roots)
	return client
}

// source returns the source that connects to s.
func (s *Server) source(name string, o *AssembleOptions) (ensemble.Source, error) {
	client := o.clientOptions(name, s.Protocol, s.Sampling, s.ClientRoots, s.Roots)
	for _, t := range transports {
		if t.name == s.Transport {
			return t.source(s, o, &client)
		}
	}
	return nil, fmt.Errorf("unknown transport %q", s.Transport)
}

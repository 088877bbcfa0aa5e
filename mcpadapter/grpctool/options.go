// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// defaultMaxMessage is the default of [Options.MaxMessage], in bytes.
const defaultMaxMessage = 16 << 20

// The names of the service: ours, and the name in the contract that it continues.
const (
	Service         = "consort.tools.v1.McpToolService"
	OriginalService = "farmer_power.mcp.v1.McpToolService"
)

// Options describe a tool server. The zero value is for a server that is reached over
// TLS, whose certificate is trusted by the system's roots, and that needs no
// credentials.
type Options struct {
	// Server is the name of the server in errors and logs; default its address, or the
	// name of its Dapr application.
	Server string
	// Logger receives log entries about the connection; nil is silent.
	Logger *zap.Logger
	// Service is the full name of the gRPC service. By default it is Service, and
	// OriginalService if the server does not implement Service.
	Service string
	// Category lists only the tools of this category; empty lists all.
	Category string
	// Caller names the caller of each call, for the server's audit log
	// (caller_agent_id). It is not a credential. May be empty.
	Caller string

	// TLS holds the roots, the client certificate and other TLS settings; see
	// [TLSFiles]. Nil uses the system's roots.
	TLS *tls.Config
	// Plaintext disables TLS.
	Plaintext bool
	// BearerToken is sent as the metadata authorization.
	BearerToken string
	// Token returns the bearer token for each request except pings; it takes precedence
	// over BearerToken. It is called concurrently.
	Token func(context.Context) (string, error)
	// Metadata is sent with every request.
	Metadata map[string]string
	// TrustedMetadata maps metadata names to the names of trusted values
	// ([invoker.Trusted]) to send with each tool call: a string unchanged, anything
	// else as JSON. It takes precedence over Metadata and tokens. A call without the
	// value fails with UNAUTHORIZED. Metadata names that end in -bin accept any text,
	// all others only printable ASCII (gRPC over HTTP/2, § Requests).
	TrustedMetadata map[string]string
	// PlaintextSecrets allows sending tokens and metadata over a connection without
	// TLS. Otherwise they are sent without TLS only within this machine: to a loopback
	// address or a Unix socket.
	PlaintextSecrets bool

	// MaxMessage bounds one message to or from the server, in bytes; default 16 MiB.
	// The server has its own limit, usually 4 MiB.
	MaxMessage int
	// KeepAlive is the idle time after which the client sends an HTTP/2 ping while
	// calls are under way; if the server does not answer within 20 s, the connection is
	// lost. At least 10 s; 0 disables it. Servers close connections that ping more
	// often than they allow, usually every 5 min. ensemble.Options.KeepAlive has no
	// such limit, and also works without calls.
	KeepAlive time.Duration
}

func (o *Options) withDefaults(server string) Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.Metadata, full.TrustedMetadata = maps.Clone(full.Metadata), maps.Clone(full.TrustedMetadata)
	full.Server = cmp.Or(full.Server, server)
	if full.MaxMessage <= 0 {
		full.MaxMessage = defaultMaxMessage
	}
	full.Logger = logevent.Logger(full.Logger)
	full.Logger = full.Logger.With(zap.String("server", full.Server))
	return full
}

// services returns the service names to try, in order.
func (o *Options) services() []string {
	if o.Service != "" {
		return []string{o.Service}
	}
	return []string{Service, OriginalService}
}

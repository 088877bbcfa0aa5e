// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// defaultMaxMessage is the default of [Options.MaxMessage], in bytes.
const defaultMaxMessage = 16 << 20

// The names of the service: ours, and that of the contract which it continues.
const (
	Service         = "consort.tools.v1.McpToolService"
	OriginalService = "farmer_power.mcp.v1.McpToolService"
)

// Options describe a server of tools. The zero value is a server that is
// reached over TLS, whose certificate the system's roots vouch for, and that
// asks for no credentials.
type Options struct {
	// Server is what the server is called in errors and logs; default its
	// address, or the name of its Dapr application.
	Server string
	// Logger takes what is worth knowing about the connection; nil is silent.
	Logger *zap.Logger
	// Service is the full name of the gRPC service. By default it is Service,
	// and OriginalService where that is not implemented.
	Service string
	// Category asks for the tools of this category only; empty is all.
	Category string
	// Caller is what calls say of who calls, for the server's audit
	// (caller_agent_id). It is no credential. May be empty.
	Caller string

	// TLS has the roots, the certificate of this client and whatever else TLS
	// can be told; see [TLSFiles]. Nil takes the system's roots.
	TLS *tls.Config
	// Plaintext does without TLS.
	Plaintext bool
	// BearerToken is sent as the metadata authorization.
	BearerToken string
	// Token is asked for the bearer token of each request but pings; it wins
	// over BearerToken. It is called concurrently.
	Token func(context.Context) (string, error)
	// Metadata is sent with every request.
	Metadata map[string]string
	// TrustedMetadata is sent with each call of a tool and says for whom it is:
	// the name of the metadata, and that of the trusted value
	// ([invoker.Trusted]) in it, a string as it is and anything else as JSON.
	// It wins over Metadata and tokens, and without the value a call fails with
	// UNAUTHORIZED. Names that end in -bin take any text, all others printable
	// ASCII only (gRPC over HTTP/2, § Requests).
	TrustedMetadata map[string]string
	// PlaintextSecrets lets tokens and metadata go over a connection without
	// TLS. Without it they do so within this machine only: to a loopback address or
	// a Unix socket.
	PlaintextSecrets bool

	// MaxMessage bounds one message to or from the server, in bytes; default
	// 16 MiB. The server has a bound of its own, usually 4 MiB.
	MaxMessage int
	// KeepAlive is after how long a silence an HTTP/2 ping asks whether the
	// server is still there while calls are under way; if it does not answer
	// in 20 s the connection is lost. At least 10 s; 0 is off. Servers end
	// connections that ping more often than they allow, usually every 5 min.
	// ensemble.Options.KeepAlive has no such limit, and works without calls.
	KeepAlive time.Duration
}

func (o *Options) withDefaults(server string) Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.Server = cmp.Or(full.Server, server)
	if full.MaxMessage <= 0 {
		full.MaxMessage = defaultMaxMessage
	}
	full.Logger = event.Logger(full.Logger)
	full.Logger = full.Logger.With(zap.String("server", full.Server))
	return full
}

// services are the names to ask for, in this order.
func (o *Options) services() []string {
	if o.Service != "" {
		return []string{o.Service}
	}
	return []string{Service, OriginalService}
}

// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// Dapr returns the source of a tool server that is reached through the Dapr sidecar of
// this program, by the name of its application.
//
// The address of the sidecar is DAPR_GRPC_ENDPOINT, for example
// https://sidecar.example.com:443, or else the port DAPR_GRPC_PORT of this machine, by
// default 50001. The sidecar routes gRPC by the metadata dapr-app-id (Dapr: service
// invocation with gRPC), and gets DAPR_API_TOKEN as dapr-api-token. The endpoint
// determines whether TLS is used; without an endpoint it is not. Options.Plaintext is
// ignored. The variables are read when Dapr is called. Open reports errors in them.
func Dapr(application string, options *Options) ensemble.Source {
	return behindSidecar(application, options)
}

// DaprMCP is like [MCP], but goes through the Dapr sidecar. It tells the sidecar that
// the request is a stream (dapr-stream): otherwise a sidecar with a retry policy
// forwards only one message.
func DaprMCP(application string, options *Options, client *mcpadapter.ClientOptions) ensemble.Source {
	return overStream(application, options, client, func(o *Options) *source {
		s := behindSidecar(application, o)
		s.own["dapr-stream"] = "true"
		return s
	})
}

func behindSidecar(application string, options *Options) *source {
	o := options.withDefaults(application)
	target, plaintext, err := sidecar(os.Getenv("DAPR_GRPC_ENDPOINT"), os.Getenv("DAPR_GRPC_PORT"))
	if err == nil && application == "" {
		err = fmt.Errorf("the name of the Dapr application is empty")
	}
	o.Plaintext = plaintext
	s := newSource(target, o)
	s.own = map[string]string{"dapr-app-id": application}
	s.peer.Application = application
	if token := os.Getenv("DAPR_API_TOKEN"); token != "" {
		s.own["dapr-api-token"] = token
		s.secret = true
	}
	s.wrong = cmp.Or(err, s.check())
	return s
}

// sidecar returns the target that the variables specify, and whether it is reached
// without TLS.
func sidecar(endpoint, port string) (target string, plaintext bool, err error) {
	if endpoint == "" {
		return net.JoinHostPort("127.0.0.1", cmp.Or(port, "50001")), true, nil
	}
	if !strings.Contains(endpoint, "://") && !strings.HasPrefix(endpoint, "unix") {
		endpoint = "dns://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", false, fmt.Errorf("DAPR_GRPC_ENDPOINT is not a URL")
	}
	plaintext = u.Query().Get("tls") != "true"
	switch u.Scheme {
	case "https", "http":
		return withPort(u, map[string]string{"https": "443", "http": "80"}[u.Scheme]), u.Scheme == "http", nil
	case "dns":
		if name := strings.Trim(u.Path, "/"); name != "" { // dns://server/name:port
			return "dns://" + u.Host + "/" + name, plaintext, nil
		}
		return withPort(u, "443"), plaintext, nil
	case "unix", "unix-abstract":
		u.RawQuery = ""
		return u.String(), plaintext, nil
	}
	return "", false, fmt.Errorf("DAPR_GRPC_ENDPOINT has the scheme %q; want http, https, dns or unix", u.Scheme)
}

func withPort(u *url.URL, port string) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

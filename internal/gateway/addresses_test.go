// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
)

// TestKeysOfAddresses: a key of [serve] that needs an address stops serving without one, whether
// the file or a flag gives the address, and stops nothing else.
func TestKeysOfAddresses(t *testing.T) {
	const head = "[model]\nname = 'm'\nbase_url = 'http://x'\n[serve]\n"
	for _, test := range []struct {
		keys, http, grpc string
		stdio            bool
		want             []string // parts of the error
	}{
		{keys: "clients = [{token = '0123456789abcdef'}]", want: []string{"consort.toml:5:1: serve.clients: only for serving over HTTP or gRPC: give --http"}},
		{keys: "clients = [{token = '0123456789abcdef'}]", http: "127.0.0.1:0"},
		{keys: "clients = [{token = '0123456789abcdef'}]", http: "0.0.0.0:0"},
		{keys: "clients = [{token = '0123456789abcdef'}]", grpc: "127.0.0.1:0"},
		{keys: "clients = [{token = '0123456789abcdef'}]", stdio: true},
		{keys: "rate = 5", http: "0.0.0.0:0", want: []string{"serving at 0.0.0.0:0: without a token"}},
		{keys: "hosts = ['x']\nstateless = true", grpc: "127.0.0.1:0", want: []string{
			"consort.toml:5:1: serve.hosts: only for serving over HTTP: give --http", "consort.toml:6:1: serve.stateless: only for serving over HTTP:"}},
		{keys: "profiles = [{name = 'x', allow = ['*']}]\nmax_body = 5\nopen = true", want: []string{"5:1: serve.profiles", "7:1: serve.open"}},
		{keys: "grpc_tls = {certificate = 'c', key = 'k'}", http: "127.0.0.1:0", want: []string{"serve.grpc_tls: only for serving over gRPC: give --grpc"}},
		{keys: "oidc = {issuer = 'https://login.example', audience = 'tools'}", want: []string{"serve.oidc"}},
	} {
		cfg, err := config.Parse("consort.toml", []byte(head+test.keys), nil)
		if err != nil {
			t.Errorf("%s stops every command: %v", test.keys, err)
			continue
		}
		cfg.Serve.HTTP, cfg.Serve.GRPC = values.Plain(test.http), values.Plain(test.grpc)
		options := &Options{Flags: map[string]bool{"stdio": test.stdio}}
		err = options.mayServe(cfg)
		if (err == nil) != (test.want == nil) {
			t.Errorf("%s at %q %q: %v", test.keys, test.http, test.grpc, err)
		}
		for _, part := range test.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error is %v, want %s", test.keys, err, part)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package approving

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/approvals"
)

// Servers returns a function that describes the server of an ensemble.
func Servers(cfg *config.Config) func(ensemble string) approvals.Server {
	here, _ := os.Getwd() // without one, the command line decides
	return func(ensemble string) approvals.Server {
		if s := cfg.MCP[ensemble]; s != nil {
			if s.Transport == config.Stdio {
				return startedServer(s, here)
			}
			return approvals.Server{
				Address: address("url", string(s.Transport), s.URL.Reveal()) + valuesOf(s.Headers) + rootsOf(s.Roots) + loginOf(s.OAuth),
				Label:   hostOf(s.URL),
			}
		}
		if s := cfg.GRPC[ensemble]; s != nil {
			return approvals.Server{
				Address: address("grpc", s.Address.Reveal(), s.Dapr.Reveal(), s.Token.Reveal()) + valuesOf(s.Metadata) + rootsOf(s.Roots) +
					address(strconv.FormatBool(s.MCP), strconv.FormatBool(s.Plaintext), s.TLS.CA.Reveal(), s.TLS.Certificate.Reveal(), s.TLS.Key.Reveal(), s.Category, s.Caller),
				Label: s.Address.String() + s.Dapr.String(),
			}
		}
		return approvals.Server{Address: "own", Label: "this program"}
	}
}

// hostOf returns the scheme and the host of a URL as the configuration writes it; other
// parts may contain secrets.
func hostOf(address values.Value) string {
	u, err := url.Parse(address.String())
	if err != nil || u.Host == "" {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host
}

// startedServer describes a server that is started as a subprocess. Its working directory
// is part of its address: the same command may work on other files elsewhere.
func startedServer(s *config.Server, here string) approvals.Server {
	directory := s.Directory.Reveal()
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(here, directory)
	}
	words := []string{"command", directory}
	for _, word := range s.Command {
		words = append(words, word.Reveal())
	}
	label := directory
	if len(s.Command) > 0 {
		label = s.Command[0].String() + " in " + directory
	}
	return approvals.Server{Address: address(words...) + valuesOf(s.Environment) + rootsOf(s.Roots), Label: label}
}

// address joins the parts of an address so that different parts have different addresses.
func address(parts ...string) string {
	text, _ := json.Marshal(parts) // strings always have a JSON form
	return string(text) + "\n"
}

// valuesOf returns names with their values as a part of an address. The same server can
// work for another person, or elsewhere, with other variables or headers.
func valuesOf(all map[string]values.Value) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name, all[name].Reveal())
	}
	return address(parts...)
}

// loginOf returns a login as a part of an address: another client can be logged in as another
// person. Secrets and tokens are left out: they change while the login stays the same.
func loginOf(o *config.OAuth) string {
	if o == nil {
		return ""
	}
	parts := []string{"login", o.Grant, o.Issuer.Reveal(), o.ClientID.Reveal(), o.ClientMetadata.Reveal(), o.Per, o.Audience.Reveal()}
	if o.Provider != nil {
		parts = append(parts, o.Provider.Issuer.Reveal(), o.Provider.ClientID.Reveal())
	}
	return address(parts...)
}

// rootsOf returns roots as a part of an address.
func rootsOf(roots []config.Root) string {
	var parts []string
	for _, root := range roots {
		parts = append(parts, root.Name, root.Path.Reveal())
	}
	return address(parts...)
}

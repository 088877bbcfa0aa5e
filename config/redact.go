// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/internal/redact"
)

// secrets returns the texts that must not be shown: the values of variables that are not
// public, wherever they are, and values in the file where credentials belong.
func (c *Config) secrets() []string {
	s := &secrets{public: c.PublicVariables}
	s.variables(reflect.ValueOf(c))
	if c.Model != nil {
		for _, m := range c.Model.models() {
			s.model(m)
		}
	}
	for _, server := range c.MCP {
		if server != nil {
			s.mcp(server)
		}
	}
	for _, server := range c.GRPC {
		if server != nil {
			s.grpc(server)
		}
	}
	s.trusted(c.Trusted)
	if c.History != nil {
		s.texts = append(s.texts, redact.DSN(c.History.DSN.Reveal())...)
	}
	s.serve(c.Serve)
	return s.texts
}

// variables adds the values of the variables in v, and the parts of a
// free-form table whose names suggest a secret.
func (s *secrets) variables(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[values.Value]():
		s.texts = append(s.texts, v.Interface().(values.Value).Secrets(s.isPublic)...)
		return
	case reflect.TypeFor[values.Table]():
		s.texts = append(s.texts, v.Interface().(values.Table).Secrets(s.isPublic)...)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.variables(v.Elem())
		}
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), "github.com/consort-go/consort/") {
			return // a logger, for instance
		}
		for field, value := range v.Fields() {
			if field.IsExported() || field.Anonymous {
				s.variables(value)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.variables(v.Index(i))
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			s.variables(value)
		}
	}
}

// model adds the secrets of a model.
func (s *secrets) model(m *Model) {
	s.address(m.BaseURL)
	s.credential(m.APIKey.Reveal())
	if variable := m.decisive().KeyVariable(); variable != "" && m.APIKey.Reveal() == "" {
		s.texts = append(s.texts, os.Getenv(variable)) // the model reads it from the environment
	}
	s.named(m.Headers)
}

// mcp adds the secrets that are sent to an MCP server, and where clients log in for it.
func (s *secrets) mcp(server *Server) {
	s.address(server.URL)
	s.named(server.Environment)
	s.named(server.Headers)
	if a := server.OAuth; a != nil {
		s.credential(a.ClientSecret.Reveal())
		s.credential(a.ClientKey.Reveal())
		s.credential(a.SubjectToken.Reveal())
		if a.Provider != nil {
			s.credential(a.Provider.ClientSecret.Reveal())
		}
	}
}

// secrets collects texts that must not be shown.
type secrets struct {
	public []string
	texts  []string
}

// grpc adds the secrets that are sent to a gRPC server.
func (s *secrets) grpc(server *GRPCServer) {
	s.credential(server.Token.Reveal())
	s.named(server.Metadata)
	if server.Dapr.Reveal() != "" {
		s.texts = append(s.texts, os.Getenv("DAPR_API_TOKEN")) // sent to the sidecar automatically
	}
}

// trusted adds the whole text of trusted values that are secret.
func (s *secrets) trusted(values map[string]values.Trusted) {
	for _, t := range values {
		if !t.Secret {
			continue
		}
		text := t.Value.Reveal()
		s.credential(text)
		var decoded any
		if t.JSON && json.Unmarshal([]byte(text), &decoded) == nil {
			s.leaves(decoded)
		}
	}
}

// leaves adds all strings in a JSON value.
func (s *secrets) leaves(value any) {
	switch value := value.(type) {
	case string:
		s.credential(value)
	case []any:
		for _, element := range value {
			s.leaves(element)
		}
	case map[string]any:
		for _, inner := range value {
			s.leaves(inner)
		}
	}
}

// serve adds the tokens of served clients, and their secret trusted values.
func (s *secrets) serve(served *serve.Options) {
	if served == nil {
		return
	}
	s.credential(served.Token.Reveal())
	for _, client := range served.Clients {
		s.credential(client.Token.Reveal())
		s.trusted(client.Trusted)
	}
	if o := served.OIDC; o != nil {
		s.credential(o.ClientSecret.Reveal())
	}
	if m := served.ResourceMetadata; m != nil {
		for _, url := range append([]values.Value{m.Resource}, m.AuthorizationServers...) {
			s.address(url)
		}
	}
}

// isPublic reports whether the value of an environment variable may be shown.
func (s *secrets) isPublic(variable string) bool {
	return redact.IsPublicVariable(variable) || slices.Contains(s.public, variable)
}

// named adds the values whose names suggest a secret.
func (s *secrets) named(values map[string]values.Value) {
	for name, value := range values {
		if redact.Names(name) {
			s.credential(value.Reveal())
		}
	}
}

// credential adds a key, or the value of a header such as Authorization.
func (s *secrets) credential(text string) { s.texts = append(s.texts, redact.Credential(text)...) }

// address adds the credentials in a URL.
func (s *secrets) address(value values.Value) {
	s.texts = append(s.texts, redact.URL(value.Reveal())...)
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/internal/redact"
)

// secrets returns the texts that must not be shown: the values of variables that are not
// public, and values in the file where credentials belong.
func (c *Config) secrets() []string {
	s := &secrets{public: c.PublicVariables}
	if c.Model != nil {
		for _, m := range c.Model.models() {
			s.model(m)
		}
	}
	for _, server := range c.MCP {
		if server == nil {
			continue
		}
		s.add(server.Command...)
		s.add(server.Directory, server.URL)
		s.address(server.URL)
		s.named(server.Environment)
		s.named(server.Headers)
		if a := server.OAuth; a != nil {
			s.add(a.Issuer, a.ClientID, a.ClientSecret, a.ClientMetadata, a.RedirectURL)
			s.credential(a.ClientSecret.Reveal())
		}
	}
	for _, server := range c.GRPC {
		if server != nil {
			s.grpc(server)
		}
	}
	for _, kept := range c.Supervised() {
		s.add(kept.Pin)
		s.table(kept.Settings)
	}
	s.trusted(c.Trusted)
	if c.Audit != nil {
		s.add(c.Audit.File)
	}
	if c.History != nil {
		s.add(c.History.Path)
		s.database(c.History.DSN)
	}
	if c.Compaction != nil {
		s.add(c.Compaction.Model)
	}
	s.serve(c.Serve)
	return s.texts
}

// model adds the secrets of a model.
func (s *secrets) model(m *Model) {
	s.add(m.Name, m.BaseURL, m.Organization, m.Project)
	s.address(m.BaseURL)
	s.add(m.APIKey)
	s.credential(m.APIKey.Reveal())
	if variable := m.decisive().KeyVariable(); variable != "" && m.APIKey.Reveal() == "" {
		s.texts = append(s.texts, os.Getenv(variable)) // the model reads it from the environment
	}
	s.named(m.Headers)
	s.table(m.ExtraBody)
	for _, tool := range m.HostedTools {
		s.table(tool)
	}
	if m.ResponseFormat != nil {
		s.table(m.ResponseFormat.Schema)
	}
}

// secrets collects texts that must not be shown.
type secrets struct {
	public []string
	texts  []string
}

func (s *secrets) add(values ...values.Value) {
	for _, v := range values {
		s.texts = append(s.texts, v.Secrets(s.isPublic)...)
	}
}

// grpc adds the secrets that are sent to a gRPC server.
func (s *secrets) grpc(server *GRPCServer) {
	s.add(server.Address, server.Dapr, server.Token, server.TLS.CA, server.TLS.Certificate, server.TLS.Key)
	s.credential(server.Token.Reveal())
	s.named(server.Metadata)
	if server.Dapr.Reveal() != "" {
		s.texts = append(s.texts, os.Getenv("DAPR_API_TOKEN")) // sent to the sidecar automatically
	}
}

// trusted adds the variables in trusted values, and the whole text of secret ones.
func (s *secrets) trusted(values map[string]values.Trusted) {
	for _, t := range values {
		s.add(t.Value)
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

// serve adds the tokens of served clients, and their trusted values.
func (s *secrets) serve(served *serve.Options) {
	if served == nil {
		return
	}
	s.add(served.HTTP, served.GRPC, served.Health, served.Token, served.HTTPTLS.Certificate, served.HTTPTLS.Key, served.HTTPTLS.ClientCA, served.GRPCTLS.Certificate, served.GRPCTLS.Key, served.GRPCTLS.ClientCA)
	s.credential(served.Token.Reveal())
	for _, client := range served.Clients {
		s.add(client.Token)
		s.credential(client.Token.Reveal())
		s.trusted(client.Trusted)
	}
	if o := served.OIDC; o != nil {
		s.add(o.Issuer, o.Audience, o.ClientID, o.ClientSecret)
		s.credential(o.ClientSecret.Reveal())
	}
	if m := served.ResourceMetadata; m != nil {
		s.add(m.Resource)
		s.add(m.AuthorizationServers...)
		for _, url := range append([]values.Value{m.Resource}, m.AuthorizationServers...) {
			s.address(url)
		}
	}
}

// isPublic reports whether the value of an environment variable may be shown.
func (s *secrets) isPublic(variable string) bool {
	return redact.IsPublicVariable(variable) || slices.Contains(s.public, variable)
}

// named adds the variables in values, and the whole value if its name suggests a secret.
func (s *secrets) named(values map[string]values.Value) {
	for name, value := range values {
		s.add(value)
		if redact.Names(name) {
			s.credential(value.Reveal())
		}
	}
}

// table does the same for a free-form table.
func (s *secrets) table(t values.Table) { s.texts = append(s.texts, t.Secrets(s.isPublic)...) }

// credential adds a key, or the value of a header such as Authorization.
func (s *secrets) credential(text string) { s.texts = append(s.texts, redact.Credential(text)...) }

// address adds the credentials in a URL.
func (s *secrets) address(value values.Value) {
	s.texts = append(s.texts, redact.URL(value.Reveal())...)
}

// database adds a DSN and the passwords in it.
func (s *secrets) database(dsn values.Value) {
	s.add(dsn)
	s.texts = append(s.texts, redact.DSN(dsn.Reveal())...)
}

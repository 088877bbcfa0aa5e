// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// The identity of this client. Nothing listens at these addresses: the client reads the
// redirect and does not follow it, and the suite knows the content of the document.
const (
	callback = "http://localhost:3000/callback"
	document = "https://conformance-test.local/client-metadata.json"
)

// authorization returns a handler for the authorization code flow with each registration
// method of a client (MCP 2025-11-25, basic/authorization), or for the client credentials
// grant (SEP-1046) if the scenario tests that.
func authorization(task task) (auth.OAuthHandler, error) {
	if task.Name == "auth/client-credentials-basic" {
		return extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{Credentials: task.credentials()})
	}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                    callback,
		AuthorizationCodeFetcher:       authorize,
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: document},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "consort-conformance", RedirectURIs: []string{callback}, ApplicationType: "native",
			},
		},
	}
	if task.ClientID != "" && task.ClientSecret != "" {
		config.PreregisteredClient = task.credentials()
	}
	return auth.NewAuthorizationCodeHandler(config)
}

func (t task) credentials() *oauthex.ClientCredentials {
	return &oauthex.ClientCredentials{
		ClientID: t.ClientID, Issuer: t.Issuer,
		ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: t.ClientSecret},
	}
}

// authorize stands in for the user: the suite's authorization server grants access and
// redirects immediately.
func authorize(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := stay.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		return nil, fmt.Errorf("the authorization server does not redirect: status %d: %w", response.StatusCode, err)
	}
	query := back.Query()
	if refusal := query.Get("error"); refusal != "" {
		return nil, errors.New("the authorization server refuses: " + refusal)
	}
	return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, nil
}

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

// Who this client says it is. Nothing listens there: the redirect is read, not
// followed, and the suite knows what the document would say.
const (
	callback = "http://localhost:3000/callback"
	document = "https://conformance-test.local/client-metadata.json"
)

// authorization is the authorization code flow with each way of registration
// that a client may have (MCP 2025-11-25, basic/authorization); or, where the
// suite plays a machine's authorization server, the client credentials grant
// (SEP-1046).
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

// authorize stands in for the person: the suite's authorization server agrees
// at once and redirects back.
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

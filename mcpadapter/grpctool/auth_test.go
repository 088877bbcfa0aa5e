// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func callAs(t *testing.T, address, token string, request *toolspb.ToolCallRequest) *toolspb.ToolCallResponse {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer "+token)
	response, err := toolspb.NewMcpToolServiceClient(raw(t, address)).CallTool(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestTokens(t *testing.T) {
	options := &grpctool.ServerOptions{
		Token:  "single",
		Tokens: []grpctool.BearerToken{{Token: "good"}, {Token: "old", Expires: time.Now().Add(-time.Second)}, {}},
		Authenticate: func(_ context.Context, token string) (string, []invoker.Value, error) {
			switch token {
			case "asked":
				return "", nil, nil
			case "denied":
				return "", nil, invoker.Failf(invoker.Denied, "not on Sundays")
			case "away":
				return "", nil, invoker.Failf(invoker.Unavailable, "the issuer sleeps")
			case "panics":
				panic("no such key")
			}
			return "", nil, errors.New("the token database says no")
		},
	}
	client := toolspb.NewMcpToolServiceClient(raw(t, registered(t, grpctool.NewServer(nil, options))))
	for header, want := range map[string]codes.Code{
		"Bearer single": codes.OK,
		"bearer good":   codes.OK,
		"Bearer asked":  codes.OK,
		"Bearer old":    codes.Unauthenticated,
		"Bearer wrong":  codes.Unauthenticated,
		"Bearer panics": codes.Unauthenticated,
		"Bearer denied": codes.PermissionDenied,
		"Bearer away":   codes.Unavailable,
		"Bearer":        codes.Unauthenticated,
		"Bearer  ":      codes.Unauthenticated,
		"Basic single":  codes.Unauthenticated,
		"":              codes.Unauthenticated,
	} {
		ctx := within(t)
		if header != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", header)
		}
		_, list := client.ListTools(ctx, new(toolspb.ListToolsRequest))
		_, call := client.CallTool(ctx, new(toolspb.ToolCallRequest))
		if status.Code(list) != want || status.Code(call) != want {
			t.Errorf("%q: %v, %v", header, list, call)
		}
		if want != codes.OK && (strings.Contains(list.Error(), "database") || strings.Contains(list.Error(), "Sundays") ||
			strings.Contains(list.Error(), "sleeps")) {
			t.Errorf("%q: the caller is told %v", header, list)
		}
	}
	twice := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer single", "authorization", "Bearer good")
	if _, err := client.ListTools(twice, new(toolspb.ListToolsRequest)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("two tokens: %v", err)
	}
}

// Tokens that are accepted without values still belong to different clients: none can
// give a call the ID of another client's call.
func TestTokensWithoutValues(t *testing.T) {
	which, err := invoker.New("which", "", func(ctx context.Context, _ struct{}) (string, error) {
		return invoker.CallFrom(ctx).ID, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{
		Tools:        []invoker.Invoker{which},
		Authenticate: func(context.Context, string) (string, []invoker.Value, error) { return "", nil, nil },
	}))
	ask := func(token string) string {
		response := callAs(t, address, token, &toolspb.ToolCallRequest{ToolName: "which", IdempotencyKey: "key"})
		if !response.Success {
			t.Fatal(response)
		}
		return response.ResultJson
	}
	if ada, again, ben := ask("ada"), ask("ada"), ask("ben"); ada != again || ada == ben {
		t.Errorf("the calls are %s, %s and %s", ada, again, ben)
	}
}

// The same holds for MCP, whatever values the clients share, and also if a client has lost its
// stream.
func TestTokensOverMCP(t *testing.T) {
	which := ensembletest.NewTool("which", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{canister.Text(call.ID)}}, nil
	})
	team := []invoker.Value{invoker.NewTrusted[string]("team").Value("red")}
	s := mcpServer(t, &grpctool.ServerOptions{Tokens: []grpctool.BearerToken{
		{Token: "ada-token", Name: "ada", Trusted: team}, {Token: "ben-token", Name: "ben", Trusted: team},
		{Token: "cleo-token", Name: "cleo"}, {Token: "dan-token", Name: "dan"},
	}}, which)
	ask := func(token string) string {
		link := dialed(t, s.address, &grpctool.Options{Plaintext: true, BearerToken: token})
		client := session(t, link, nil)
		defer client.Close()
		result, err := client.CallTool(within(t), &mcp.CallToolParams{Name: "which", Meta: mcp.Meta{mcpadapter.IdempotencyKey: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Content[0].(*mcp.TextContent).Text
	}
	for _, two := range [][2]string{{"ada-token", "ben-token"}, {"cleo-token", "dan-token"}} {
		if first, again, other := ask(two[0]), ask(two[0]), ask(two[1]); first != again || first == other {
			t.Errorf("%s: the calls are %s, %s and %s", two, first, again, other)
		}
	}
}

// A certificate is an identity, a token another one, and a request may have both.
func TestCertificates(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("server")
	ours, oursKey := ca.issue("advisor")
	other, otherKey := ca.issue("stranger")
	service, user := invoker.NewTrusted[string]("service"), invoker.NewTrusted[string]("user_id")
	var got []string
	whoami := ensembletest.NewTool("whoami", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		from, _ := service.From(ctx)
		whom, _ := user.From(ctx)
		got = append(got, from+"/"+whom)
		return invoker.Output{}, nil
	})
	tools := []invoker.Invoker{whoami}
	known := func(_ context.Context, certificate *x509.Certificate) (string, []invoker.Value, error) {
		if certificate.Subject.CommonName != "advisor" {
			return "", nil, errors.New("unknown service")
		}
		return "the advisor", []invoker.Value{service.Value("advisor"), user.Value("nobody")}, nil
	}
	overTLS := tlsFiles(t, ca.file, certificate, key)
	certificates := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: tools, Certificate: known}), grpc.Creds(credentials.NewTLS(overTLS)))
	both := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{
		Tools: tools, Certificate: known, Tokens: []grpctool.BearerToken{{Token: "ada-token", Trusted: []invoker.Value{user.Value("ada")}}},
		Trusted: []invoker.Value{service.Value("default")},
	}), grpc.Creds(credentials.NewTLS(overTLS)))

	for _, c := range []struct {
		address, certificate, key, token string
		want                             string // "" is refused
	}{
		{certificates, ours, oursKey, "", "advisor/nobody"},
		{certificates, ours, oursKey, "ignored", "advisor/nobody"},
		{certificates, other, otherKey, "", ""},
		{both, ours, oursKey, "ada-token", "advisor/ada"},
		{both, ours, oursKey, "", "advisor/nobody"},
		{both, ours, oursKey, "wrong", ""},
		{both, other, otherKey, "ada-token", ""},
	} {
		got = nil
		source := grpctool.Source(c.address, &grpctool.Options{TLS: tlsFiles(t, ca.file, c.certificate, c.key), BearerToken: c.token})
		connection, err := source.Open(within(t))
		if c.want == "" {
			if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Unauthorized {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		_, err = tool(t, connection, "whoami").Invoke(within(t), &invoker.Call{})
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		_ = connection.Close(within(t))
	}
	// A token alone is not sufficient if there is no certificate that identifies it.
	plain := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: tools, Certificate: known}))
	_, err := grpctool.Source(plain, &grpctool.Options{Plaintext: true, BearerToken: "any"}).Open(within(t))
	if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("without a certificate: %v", err)
	}
}

// The options of two servers, and their tokens, may continue one slice of trusted values.
func TestTrustedValuesAreCopied(t *testing.T) {
	user, tenant := invoker.NewTrusted[string]("user_id"), invoker.NewTrusted[string]("tenant")
	users, tenants := make([]invoker.Value, 0, 1), make([]invoker.Value, 0, 1)
	var got string
	whoami := ensembletest.NewTool("whoami", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		id, _ := user.From(ctx)
		at, _ := tenant.From(ctx)
		got = id + "@" + at
		return invoker.Output{}, nil
	})
	options := func(of, name string) *grpctool.ServerOptions {
		return &grpctool.ServerOptions{
			Tools: []invoker.Invoker{whoami}, Trusted: append(tenants, tenant.Value(of)),
			Tokens: []grpctool.BearerToken{{Token: "token-" + name, Trusted: append(users, user.Value(name))}},
		}
	}
	first := registered(t, grpctool.NewServer(nil, options("first", "ada")))
	registered(t, grpctool.NewServer(nil, options("second", "bob")))
	connection, err := grpctool.Source(first, &grpctool.Options{Plaintext: true, BearerToken: "token-ada"}).Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(within(t))
	if _, err := tool(t, connection, "whoami").Invoke(within(t), &invoker.Call{}); err != nil || got != "ada@first" {
		t.Errorf("the caller is %q, %v", got, err)
	}
}

// A program may reuse the map of one server's metadata for another server.
func TestMetadataIsCopied(t *testing.T) {
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Token: "ada-token"}))
	metadata := map[string]string{"authorization": "Bearer ada-token"}
	source := grpctool.Source(address, &grpctool.Options{Plaintext: true, Metadata: metadata})
	metadata["authorization"] = "Bearer of-another-server"
	connection, err := source.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(within(t)); err != nil {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func echoTool(t *testing.T) invoker.Invoker {
	t.Helper()
	type in struct {
		Text string `json:"text"`
	}
	echo, err := invoker.New("echo", "Says it again.", func(_ context.Context, in in) (string, error) { return in.Text, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return echo
}

// The definition arrives complete, with or without the additions to the original
// contract.
func TestDefinitions(t *testing.T) {
	at := newSite(t, (&scripted{list: func(_ context.Context, request *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
		if request.Category != "search" {
			return nil, status.Errorf(codes.InvalidArgument, "the category is %q", request.Category)
		}
		yes := true
		return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{
			{Name: "plain", Description: "As of old.", InputSchemaJson: `{"type": "object"}`, Category: "search"},
			{
				Name: "full", Title: "Full", InputSchemaJson: `{"type":"object"}`, OutputSchemaJson: `{"type":"object"}`,
				Hints: &toolspb.ToolHints{ReadOnly: true, Idempotent: true, Destructive: new(bool), OpenWorld: &yes},
			},
			{Name: "bare"},
			{Name: "broken", InputSchemaJson: `{"type":`},
			{InputSchemaJson: `{}`},
		}}, nil
	}}).under(grpctool.Service))
	options := plaintext()
	options.Category = "search"
	connection := opened(t, grpctool.Source(at.address, options))
	plain := tool(t, connection, "plain").Definition()
	if plain.Description != "As of old." || string(plain.InputSchema) != `{"type": "object"}` ||
		string(plain.Metadata[invoker.CategoryKey]) != `"search"` || plain.Hints != (invoker.Hints{}) {
		t.Errorf("plain is %+v", plain)
	}
	full := tool(t, connection, "full").Definition()
	if h := full.Hints; full.Title != "Full" || string(full.OutputSchema) != `{"type":"object"}` || !h.ReadOnly ||
		!h.Idempotent || *h.Destructive || !*h.OpenWorld {
		t.Errorf("full is %+v", full)
	}
	tool(t, connection, "bare")
	listing, err := connection.List(within(t))
	if err != nil || len(listing.Aside) != 2 || listing.Aside[0].Tool != "broken" || listing.Aside[0].Reason == "" {
		t.Errorf("set aside: %+v, %v", listing.Aside, err)
	}
	if peer := connection.Peer(); peer.Protocol != "gRPC consort.tools.v1" || peer.Name != at.address {
		t.Errorf("the peer is %+v", peer)
	}
}

// What a tool answers, as one JSON value.
func TestResults(t *testing.T) {
	for result, want := range map[string]string{
		``:                                      ``,
		`null`:                                  ``,
		`"a text"`:                              `text a text`,
		` {"n": 12345678901234567890, "b": 1} `: `json {"n":12345678901234567890,"b":1}`,
		`[1, 2]`:                                `json [1,2]`,
		`0.5`:                                   `json 0.5`,
		`{"n": NaN}`:                            `text {"n": NaN}`,
	} {
		inv, _ := answering(t, plaintext(), func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			return &toolspb.ToolCallResponse{Success: true, ResultJson: result}, nil
		})
		output, err := inv.Invoke(within(t), &invoker.Call{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range output.Content {
			switch c := c.(type) {
			case canister.TextContent:
				got += "text " + c.Text
			case canister.StructuredContent:
				got += "json " + string(c.JSON)
			default:
				t.Errorf("%q became %T", result, c)
			}
		}
		if got != want {
			t.Errorf("%q became %q, want %q", result, got, want)
		}
	}
}

func TestWhatACallCarries(t *testing.T) {
	var got *toolspb.ToolCallRequest
	options := plaintext()
	options.Caller = "advisor"
	inv, _ := answering(t, options, func(_ context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		got = request
		return &toolspb.ToolCallResponse{Success: true}, nil
	})
	if _, err := inv.Invoke(within(t), &invoker.Call{ID: "call-1", Arguments: []byte(`{"farmer_id": "WM-4521"}`)}); err != nil {
		t.Fatal(err)
	}
	if got.ToolName != "tool" || got.ArgumentsJson != `{"farmer_id": "WM-4521"}` || got.CallerAgentId != "advisor" || got.IdempotencyKey != "call-1" {
		t.Errorf("the request was %v", got)
	}
}

// A server of the original contract is found by itself, and asked by its name
// first from then on.
func TestOriginalName(t *testing.T) {
	lists := 0
	service := &scripted{list: func(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
		lists++
		return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "tool"}}}, nil
	}}
	var others atomic.Int32
	at := newSite(t, service.under(grpctool.OriginalService, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		others.Add(1)
		return status.Error(codes.Unimplemented, "unknown service")
	})))
	source := grpctool.Source(at.address, plaintext())
	for range 2 {
		if got := opened(t, source).Peer().Protocol; got != "gRPC farmer_power.mcp.v1" {
			t.Errorf("the protocol is %q", got)
		}
	}
	if lists != 2 || others.Load() != 1 {
		t.Errorf("%d listings, and %d requests by another name", lists, others.Load())
	}
	pinned := plaintext()
	pinned.Service = grpctool.Service
	_, err := grpctool.Source(at.address, pinned).Open(within(t))
	if err == nil || !strings.Contains(err.Error(), "unknown service") {
		t.Errorf("asked by our name alone: %v", err)
	}
}

// Tokens and metadata go with every request; trusted values with calls alone.
func TestMetadata(t *testing.T) {
	seen := make(map[string]metadata.MD)
	note := func(ctx context.Context, what string) { seen[what], _ = metadata.FromIncomingContext(ctx) }
	at := newSite(t, (&scripted{
		list: func(ctx context.Context, _ *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
			note(ctx, "list")
			return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "tool"}}}, nil
		},
		call: func(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			note(ctx, "call")
			return &toolspb.ToolCallResponse{Success: true}, nil
		},
	}).under(grpctool.Service))
	tokens := 0
	options := &grpctool.Options{
		Plaintext: true,
		Token: func(context.Context) (string, error) {
			tokens++
			return fmt.Sprintf("fresh-%d", tokens), nil
		},
		Metadata:        map[string]string{"x-region": "north", "x-user": "nobody"},
		TrustedMetadata: map[string]string{"x-user": "user_id", "x-name-bin": "name"},
	}
	inv := tool(t, opened(t, grpctool.Source(at.address, options)), "tool")
	if needs := inv.Definition().Needs; len(needs) != 2 || needs[0] != "name" || needs[1] != "user_id" {
		t.Errorf("the tool needs %q", needs)
	}
	user, name := invoker.NewTrusted[int]("user_id"), invoker.NewTrusted[string]("name")
	if _, err := inv.Invoke(invoker.WithTrusted(within(t), user.Value(7), name.Value("Žofie")), &invoker.Call{}); err != nil {
		t.Fatal(err)
	}
	first := func(what, key string) string { return strings.Join(seen[what].Get(key), ",") }
	if first("list", "authorization") != "Bearer fresh-1" || first("list", "x-region") != "north" || first("list",
		"x-user") != "nobody" || first("list", "x-name-bin") != "" {
		t.Errorf("with the listing went %v", seen["list"])
	}
	if first("call", "authorization") != "Bearer fresh-2" || first("call", "x-region") != "north" || first("call",
		"x-user") != "7" || first("call", "x-name-bin") != "Žofie" {
		t.Errorf("with the call went %v", seen["call"])
	}
	delete(seen, "call")
	_, err := inv.Invoke(invoker.WithTrusted(within(t), user.Value(7)), &invoker.Call{})
	if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Unauthorized || seen["call"] != nil {
		t.Errorf("a call without a trusted value came to %v", err)
	}
}

// Whether a token can be had says nothing of the connection.
func TestPingWithoutToken(t *testing.T) {
	at := newSite(t, (&scripted{}).under(grpctool.Service))
	var sealed atomic.Bool
	options := plaintext()
	options.Token = func(context.Context) (string, error) {
		if sealed.Load() {
			return "", errors.New("the vault is sealed")
		}
		return "token", nil
	}
	pinger := opened(t, grpctool.Source(at.address, options)).(ensemble.Pinger)
	sealed.Store(true)
	if err := pinger.Ping(within(t)); err != nil {
		t.Error(err)
	}
}

func TestNoToken(t *testing.T) {
	at := newSite(t, (&scripted{}).under(grpctool.Service))
	cause := errors.New("the vault is sealed")
	options := plaintext()
	options.Token = func(context.Context) (string, error) { return "", cause }
	_, err := grpctool.Source(at.address, options).Open(within(t))
	if failure := invoker.AsFailure(err); failure.Code != invoker.Unauthorized || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// What is wrong with the options is the error of Open, and shows no secret.
func TestWrongOptions(t *testing.T) {
	secret := "hunter2"
	for want, source := range map[string]struct {
		address string
		options grpctool.Options
	}{
		"not of the form host:port":         {"https://tools.example.com", grpctool.Options{}},
		`address ""`:                        {"", grpctool.Options{}},
		"sent unencrypted":                  {"tools.example.com:443", grpctool.Options{Plaintext: true, BearerToken: secret}},
		"set Options.PlaintextSecrets":      {"10.0.0.1:443", grpctool.Options{Plaintext: true, TrustedMetadata: map[string]string{"x-user": "user_id"}}},
		`named "X-Key"`:                     {"localhost:1", grpctool.Options{Metadata: map[string]string{"X-Key": secret}}},
		`named "grpc-timeout"`:              {"localhost:1", grpctool.Options{Metadata: map[string]string{"grpc-timeout": "1S"}}},
		`the metadata "x-key" cannot`:       {"localhost:1", grpctool.Options{Metadata: map[string]string{"x-key": secret + "\n"}}},
		"the bearer token cannot be sent":   {"localhost:1", grpctool.Options{BearerToken: secret + "\n"}},
		`"x-user" has no name of a trusted`: {"localhost:1", grpctool.Options{TrustedMetadata: map[string]string{"x-user": ""}}},
	} {
		_, err := grpctool.Source(source.address, &source.options).Open(within(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Fifty servers are discovered side by side: none answers before all were asked.
// One that is not there is away, and costs the others nothing.
func TestDiscovery(t *testing.T) {
	const servers = 50
	var asked sync.WaitGroup
	asked.Add(servers)
	service := &scripted{list: func(ctx context.Context, _ *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
		asked.Done()
		asked.Wait()
		return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "tool"}}}, nil
	}}
	at := newSite(t, service.under(grpctool.Service))
	ensembles := []*ensemble.Ensemble{ensemble.New("gone", grpctool.Source("127.0.0.1:1", plaintext()), nil)}
	for i := range servers {
		ensembles = append(ensembles, ensemble.New(fmt.Sprintf("server%02d", i), grpctool.Source(at.address, plaintext()), nil))
	}
	catalog, err := rosterOf(t, ensembles...).Catalog(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if tools, away := len(catalog.Tools()), catalog.Away(); tools != servers || len(away) != 1 || away[0].Ensemble != "gone" {
		t.Errorf("%d tools, away: %v", tools, away)
	}
	if _, ok := catalog.Find("server07__tool"); !ok {
		t.Error("a tool is not found by its name")
	}
}

func TestNobodyThere(t *testing.T) {
	at := newSite(t, (&scripted{}).under(grpctool.Service))
	at.kill()
	at.served.Wait()
	_, err := grpctool.Source(at.address, plaintext()).Open(within(t))
	if failure := invoker.AsFailure(err); failure.Code != invoker.Unavailable || !strings.Contains(err.Error(), at.address) {
		t.Errorf("got %v", err)
	}
}

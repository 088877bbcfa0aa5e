// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
)

// of returns trusted values with texts.
func of(pairs ...string) (values []invoker.Value) {
	for i := 0; i < len(pairs); i += 2 {
		text, _ := json.Marshal(pairs[i+1])
		values = append(values, invoker.TrustedJSON(pairs[i], text))
	}
	return values
}

// sends sends a message as the caller of ctx.
func sends(ctx context.Context, t *testing.T, parts *config.Assembly, log history.Log, conversation string) {
	t.Helper()
	ctx, err := parts.WithSender(ctx)
	if err == nil {
		err = engine.Post(ctx, log, nil, conversation, canister.User{Content: canister.Texts("hi")}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// text returns trusted values as text.
func text(values []invoker.Value) string {
	var parts []string
	for _, value := range invoker.TrustedFrom(invoker.WithTrusted(context.Background(), values...)) {
		content, _ := value.Reveal()
		parts = append(parts, value.Name()+"="+string(content))
	}
	return strings.Join(parts, " ")
}

// A turn runs with the trusted values of the client that sent its message, and of no other one of the owner.
func TestValuesOfTheSender(t *testing.T) {
	serve := `
[conversation]
identity = ["user"]
[serve]
http = "127.0.0.1:0"
clients = [
  {name = "laptop", token = "ada-0123456789abcdef", trusted = {user = "ada", crm = "FULL", tenant = "x"}},
  {name = "ci", token = "ben-0123456789abcdef", trusted = {user = "ada", crm = "READONLY", tenant = "x"}},
]
`
	parts := talking(t, serve)
	log := history.NewMemory()
	owner, err := parts.OwnerOf(invoker.WithTrusted(t.Context(), of("user", "ada")...))
	if err != nil {
		t.Fatal(err)
	}
	info := history.Info{ID: "c", Owner: owner}
	expect := func(parts *config.Assembly, want string) {
		t.Helper()
		values, err := parts.ValuesOf(t.Context(), info, log)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(values); got != want {
			t.Errorf("the values are %s, want %s", got, want)
		}
	}
	if err := log.Append(t.Context(), "c", 0, canister.User{Content: canister.Texts("without a sender")}); err != nil {
		t.Fatal(err)
	}
	expect(parts, `tenant="x" user="ada"`)
	client := func(name, crm string) context.Context {
		return access.WithName(invoker.WithTrusted(t.Context(), of("user", "ada", "crm", crm, "tenant", "x")...), name)
	}
	sends(client("ci", "READONLY"), t, parts, log, "c")
	expect(parts, `crm="READONLY" tenant="x" user="ada"`)
	sends(client("laptop", "FULL"), t, parts, log, "c")
	expect(parts, `crm="FULL" tenant="x" user="ada"`)
	sends(access.WithName(invoker.WithTrusted(t.Context(), of("user", "operator")...), "operator"), t, parts, log, "c")
	expect(parts, `crm="FULL" tenant="x" user="ada"`)
	sends(client("gone", "FULL"), t, parts, log, "c")
	if values, err := parts.ValuesOf(t.Context(), info, log); err == nil || !strings.Contains(err.Error(), `the client "gone"`) {
		t.Errorf("%v, %v", values, err)
	}
}

// Clients with certificates share conversations with each other, and with clients that have tokens.
func TestSharing(t *testing.T) {
	_, folder := certificates(t)
	for clients, want := range map[string]string{
		`{name = "a", certificate = "a"}, {name = "b", certificate = "b"}`:                                                          "[a b]",
		`{name = "a", certificate = "a", trusted = {user = "x"}}, {name = "b", token = "0123456789abcdef", trusted = {user = "x"}}`: "[a b]",
		`{name = "a", certificate = "a", trusted = {user = "x"}}, {name = "b", certificate = "b", trusted = {user = "y"}}`:          "[]",
	} {
		parts := talking(t, `
[serve]
grpc = "127.0.0.1:0"
grpc_tls = {certificate = "`+folder+`/ca.pem", key = "`+folder+`/key.pem", client_ca = "`+folder+`/ca.pem"}
clients = [`+clients+"]\n")
		if got := fmt.Sprint(parts.Sharing()); got != want {
			t.Errorf("%s: %s, want %s", clients, got, want)
		}
	}
}

// A client with a token can have the certificate of another client too, with the values of both.
func TestValuesOfATokenWithACertificate(t *testing.T) {
	_, folder := certificates(t)
	parts, log := talking(t, `
[serve]
grpc = "127.0.0.1:0"
grpc_tls = {certificate = "`+folder+`/ca.pem", key = "`+folder+`/key.pem", client_ca = "`+folder+`/ca.pem"}
clients = [
  {name = "site", certificate = "site", trusted = {tenant = "x"}},
  {name = "ada", token = "ada-0123456789abcdef", trusted = {user = "ada"}},
]
`), history.NewMemory()
	ctx := access.WithName(invoker.WithTrusted(t.Context(), of("tenant", "x", "user", "ada")...), "ada")
	owner, err := parts.OwnerOf(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sends(ctx, t, parts, log, "c")
	values, err := parts.ValuesOf(t.Context(), history.Info{ID: "c", Owner: owner}, log)
	if want := `tenant="x" user="ada"`; err != nil || text(values) != want {
		t.Errorf("%s, %v, want %s", text(values), err, want)
	}
}

// A caller without any of the values that identify a user owns no conversation, so two of them do not share
// theirs. Callers of whom nothing at all is known are one owner.
func TestOwnersAreIdentified(t *testing.T) {
	parts := talking(t, "[conversation]\nidentity = [\"user\"]\n[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\n[history]\nstore = \"none\"\n")
	converse := parts.Serve.Tools[0]
	for name, ctx := range map[string]context.Context{
		"other values": invoker.WithTrusted(t.Context(), of("sub", "ada")...), "a name": access.WithName(t.Context(), "ada"), "a person": access.WithUser(t.Context(), "ada"),
	} {
		owner, err := parts.OwnerOf(ctx)
		if failure := invoker.AsFailure(err); err == nil || failure.Code != invoker.Denied || !strings.Contains(failure.Message, "conversation.identity: user") {
			t.Errorf("%s: %s, %v", name, owner, err)
		}
		if _, err := parts.WithSender(ctx); err == nil {
			t.Errorf("%s: a sender", name)
		}
		if _, err := converse.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"message": "hi"}`)}); err == nil || invoker.AsFailure(err).Code != invoker.Denied {
			t.Errorf("%s: the tool: %v", name, err)
		}
	}
	for name, ctx := range map[string]context.Context{"a user": invoker.WithTrusted(t.Context(), of("user", "ada")...), "nothing": t.Context()} {
		if _, err := parts.OwnerOf(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The values of a person that an issuer identified are in the log, and count only as long as the settings
// of the issuer stay.
func TestValuesOfAPersonOfAnIssuer(t *testing.T) {
	oidc := func(audience string) string {
		return "[serve]\nhttp = \"127.0.0.1:0\"\n[serve.oidc]\nissuer = \"https://login.example.com\"\naudience = \"" + audience + "\"\n"
	}
	parts, log := talking(t, oidc("tools")), history.NewMemory()
	values := append(of("iss", "https://login.example.com", "sub", "ada"), invoker.TrustedJSON("roles", json.RawMessage(`["ops"]`)))
	ctx := access.WithUser(invoker.WithTrusted(t.Context(), values...), "ada")
	owner, err := parts.OwnerOf(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sends(ctx, t, parts, log, "c")
	info := history.Info{ID: "c", Owner: owner}
	got, err := talking(t, oidc("tools")).ValuesOf(t.Context(), info, log)
	if want := `iss="https://login.example.com" roles=["ops"] sub="ada"`; err != nil || text(got) != want {
		t.Errorf("after a restart: %s, %v", text(got), err)
	}
	for name, table := range map[string]string{
		"another audience": oidc("others"), "no issuer": "[serve]\nhttp = \"127.0.0.1:0\"\n",
	} {
		if got, err := talking(t, table).ValuesOf(t.Context(), info, log); err == nil || !strings.Contains(err.Error(), "serve.oidc has changed") {
			t.Errorf("%s: %s, %v", name, text(got), err)
		}
	}
	stranger := history.Info{ID: "c", Owner: config.OwnerPrefix + "ben"}
	if got, err := parts.ValuesOf(t.Context(), stranger, log); err == nil {
		t.Errorf("a stranger: %s", text(got))
	}
}

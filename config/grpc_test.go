// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

func TestGRPCProblems(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"where": {"[grpc.a]\n[grpc.b]\naddress='x:1'\ndapr='x'\n[grpc.c]\naddress='https://x'\n[grpc.d]\ndapr='x'\ntls={plaintext=true}\n[grpc.e]\n" +
			"adress='x:1'\n",
			[]string{
				`consort.toml:1:7: grpc.a.address: missing: expected the address of the server, such as address = "tools.example.com:443", ` +
					`or dapr for one behind a Dapr sidecar`,
				`consort.toml:4:1: grpc.b.dapr: a server has either address or dapr, not both: remove one`,
				`consort.toml:6:9: grpc.c.address: expected a gRPC address, such as "tools.example.com:443"; TLS is used unless tls = {plaintext = true}`,
				`consort.toml:9:6: grpc.d.tls.plaintext: the address of the sidecar, in DAPR_GRPC_ENDPOINT, decides whether TLS is used`,
				`consort.toml:10:7: grpc.e.address: missing: expected the address of the server, such as address = "tools.example.com:443", ` +
					`or dapr for one behind a Dapr sidecar`,
				`consort.toml:11:1: grpc.e.adress: unknown key; did you mean "address"?`}},
		"what": {"[grpc.a]\naddress='x'\nservice='mpc'\n[grpc.b]\ndapr='x'\nservice='mcp'\ncategory='x'\ncaller='x'\ntrusted={metadata={x='y'}}\n" +
			"[grpc.c]\naddress='x'\nsampling=true\nprotocol='2025-11-25'\n",
			[]string{
				`consort.toml:3:9: grpc.a.service: expected "tools" or "mcp"; did you mean "mcp"?`,
				`consort.toml:7:1: grpc.b.category: not for a server with service = "mcp": remove it`,
				`consort.toml:8:1: grpc.b.caller: not for a server with service = "mcp": remove it`,
				`consort.toml:9:10: grpc.b.trusted.metadata: not for a server with service = "mcp": remove it`,
				`consort.toml:12:1: grpc.c.sampling: not for a server with service = "tools": remove it`,
				`consort.toml:13:1: grpc.c.protocol: not for a server with service = "tools": remove it`}},
		"TLS": {"[grpc.a]\naddress='x'\ntls={certificate='x'}\n[grpc.b]\naddress='x'\ntls={key='x'}\n[grpc.c]\naddress='x'\n" +
			"tls={ca='x', plaintext=true}\n[grpc.d]\naddress='x'\ntls={plaintext_secrets=true}\n",
			[]string{
				`consort.toml:3:1: grpc.a.tls.key: missing: expected the file of the certificate's key, such as key = "client.key"`,
				`consort.toml:6:1: grpc.b.tls.certificate: missing: expected the file of the key's certificate, such as certificate = "client.pem"`,
				`consort.toml:9:6: grpc.c.tls.ca: plaintext = true disables TLS; remove one of them`,
				`consort.toml:12:6: grpc.d.tls.plaintext_secrets: only with plaintext = true; with TLS, others cannot read them`}},
		"plain text": {"[grpc.a]\naddress='x:1'\ntoken='t'\ntls={plaintext=true}\n[grpc.b]\naddress='10.0.0.1:1'\nmetadata={a='t'}\n" +
			"tls.plaintext=true\n[grpc.c]\naddress='x:1'\ntrusted={metadata={a='t'}}\ntls.plaintext=true\n" +
			"[grpc.d]\naddress='127.0.0.1:1'\ntoken='t'\ntls.plaintext=true\n[grpc.e]\naddress='x:1'\ntls.plaintext=true\n[grpc.f]\naddress='x:1'\n" +
			"token='t'\ntls={plaintext=true, plaintext_secrets=true}\n" +
			"[grpc.g]\naddress='x:1'\ntrusted={arguments={a='t'}}\ntls.plaintext=true\n", []string{
			`consort.toml:4:16: grpc.a.tls.plaintext: the token, the metadata and trusted values would be sent unencrypted to another machine; use TLS, or ` +
				`allow it with plaintext_secrets = true`,
			`consort.toml:8:15: grpc.b.tls.plaintext: the token, the metadata and trusted values would be sent unencrypted to another machine; use TLS, or ` +
				`allow it with plaintext_secrets = true`,
			`consort.toml:12:15: grpc.c.tls.plaintext: the token, the metadata and trusted values would be sent unencrypted to another machine; use TLS, or ` +
				`allow it with plaintext_secrets = true`,
			`consort.toml:27:15: grpc.g.tls.plaintext: the token, the metadata and trusted values would be sent unencrypted to another machine; use TLS, or ` +
				`allow it with plaintext_secrets = true`}},
		"metadata": {"[grpc.a]\naddress='x'\ntoken='Bearer x'\nmetadata={Authorization='x', grpc-x='y', authorization='z', y=' z', z-bin='ä'}\n" +
			"trusted={metadata={y='u', X='u'}, arguments={''='u'}}\n[grpc.b]\naddress='x'\nping_after='9s'\nmax_message=0\n",
			[]string{
				`consort.toml:3:7: grpc.a.token: expected a bearer token: printable ASCII without spaces, and without the word Bearer`,
				`consort.toml:4:11: grpc.a.metadata.Authorization: expected the name of gRPC metadata: lower-case letters, digits, -, _ and ` +
					`., and not grpc- at the beginning`,
				`consort.toml:4:30: grpc.a.metadata.grpc-x: expected the name of gRPC metadata: lower-case letters, digits, -, _ and ., and ` +
					`not grpc- at the beginning`,
				`consort.toml:4:42: grpc.a.metadata.authorization: this metadata is set in token already`,
				`consort.toml:4:63: grpc.a.metadata.y: expected printable ASCII without spaces at an end; metadata whose name ends in -bin takes any text`,
				`consort.toml:5:20: grpc.a.trusted.metadata.y: this metadata is set in metadata already`,
				`consort.toml:5:27: grpc.a.trusted.metadata.X: expected the name of gRPC metadata: lower-case letters, digits, -, _ and ., ` +
					`and not grpc- at the beginning`,
				`consort.toml:5:46: grpc.a.trusted.arguments."": expected the name of an argument, not an empty one`,
				`consort.toml:8:12: grpc.b.ping_after: expected a duration of at least "10s"; keepalive has no such limit`,
				`consort.toml:9:13: grpc.b.max_message: expected an integer of at least 1`}},
		"supervision": {"[grpc.a]\naddress='x'\nrestart='never'\npark_after=2\npin_policy='warn'\n", []string{
			`consort.toml:4:1: grpc.a.park_after: with restart = "never", the first failure parks the server`,
			`consort.toml:5:1: grpc.a.pin_policy: the tools of this server are not pinned; set pin, such as pin = "tools.pins.json"`}},
		"names": {"import=['m.json']\ntools.resources=true\n[mcp.a]\nurl='http://x'\n[grpc.a]\naddress='x'\n[grpc.b]\naddress='x'\n[mcp.b]\n" +
			"url='http://x'\n[grpc.resources]\naddress='x'\n[grpc.c]\naddress='x'\n",
			[]string{
				`consort.toml:2:7: tools.resources: these tools are offered under the name "resources", which a server here already has; rename that server`,
				`consort.toml:5:7: grpc.a: another server already has this name: mcp.a on line 3`,
				`consort.toml:9:6: mcp.b: another server already has this name: grpc.b on line 7`,
				`m.json:1:17: mcpServers.c: another server already has this name, from consort.toml:13`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.text, map[string]string{"m.json": `{"mcpServers": {"c": {"command": "x"}}}`})
			wantProblems(t, err, test.want)
		})
	}
}

func TestGRPCThatCannotBeAssembled(t *testing.T) {
	_, err := config.Assemble(&config.Config{GRPC: map[string]*config.GRPCServer{
		"nil": nil, "none": {}, "both": {Address: values.Plain("x"), Dapr: values.Plain("x")},
		"files": {Address: values.Plain("x"), TLS: config.TLS{CA: values.Plain(filepath.Join(t.TempDir(), "ca.pem"))}},
		"words": {Address: values.Plain("x"), Supervision: config.Supervision{Options: ensemble.Options{Trust: "maybe"}}},
		"off":   {Supervision: config.Supervision{Disabled: true}}, "twice": {Address: values.Plain("x")},
	}, MCP: map[string]*config.Server{"twice": {Transport: config.HTTP}}}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"grpc.nil: the server is nil", "grpc.none: the server has no address", "grpc.both: the server has both",
		"grpc.files: tls: TLS authorities: ", `grpc.words: unknown trust "maybe"`, `two ensembles named "twice"`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "grpc.off") {
		t.Errorf("what is disabled is looked at: %v", err)
	}
}

func TestGRPCEnsembleOptions(t *testing.T) {
	c, err := parse("[grpc.a]\naddress='x'\nallow=['b']\ndeny=['c']\nrequired=true\nconnect_timeout='3s'\ncall_timeout='2s'\ncall_limit='4s'\n"+
		"restart='always'\npark_after=6\npark_window='7s'\n"+
		"keepalive='8s'\nidle_disconnect='9s'\nrefresh='11s'\ntrust='all'\nmax_tools=10\nsettings={k='env:HOST'}\ntrusted={arguments={a='b'}}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.GRPC["a"].EnsembleOptions()
	if want := (ensemble.Options{
		ConnectTimeout: 3 * time.Second, CallTimeout: 2 * time.Second, CallLimit: 4 * time.Second, Allow: []string{"b"}, Deny: []string{"c"},
		Required: true, Settings: map[string]any{"k": "example.host-5554"}, Fill: map[string]string{"a": "b"},
		Restart:   ensemble.Restart{Policy: ensemble.RestartAlways, Tries: 6, Window: 7 * time.Second},
		KeepAlive: 8 * time.Second, IdleDisconnect: 9 * time.Second, Refresh: 11 * time.Second, Trust: ensemble.TrustAll, MaxTools: 10,
	}); !reflect.DeepEqual(*got, want) {
		t.Errorf("the options are %+v", got)
	}
}

// farm is a server over gRPC, and what it was asked.
type farm struct {
	address string
	mu      sync.Mutex
	seen    []metadata.MD
	asked   []any
}

func (f *farm) note(ctx context.Context, request any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.seen, f.asked = append(f.seen, md), append(f.asked, request)
}

// last returns the metadata and the request that came last.
func (f *farm) last() (metadata.MD, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[len(f.seen)-1], f.asked[len(f.asked)-1]
}

// newFarm serves a tool that says what it got and a secret, over both services.
func newFarm(t *testing.T, over *tls.Config) *farm {
	t.Helper()
	type in struct {
		Plot   string `json:"plot,omitempty"`
		Farmer string `json:"farmer,omitempty"`
	}
	tool, err := invoker.New("yield", "Tells the yield.", func(_ context.Context, arguments in) (string, error) {
		return arguments.Plot + " of " + arguments.Farmer + ", as database-5553 says", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("crops", tool))
	if err != nil {
		t.Fatal(err)
	}
	inner := mcpserver.New(roster, &mcpserver.Options{OwnNames: true})
	server := grpctool.NewServer(roster, &grpctool.ServerOptions{MCP: inner, Token: "database-5553", OwnNames: true})
	f := &farm{}
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			f.note(ctx, request)
			return handler(ctx, request)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			f.note(stream.Context(), nil)
			return handler(srv, stream)
		}),
	}
	if over != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(over)))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = listener.Addr().String()
	on := grpc.NewServer(options...)
	server.Register(on)
	served := make(chan error, 1)
	go func() { served <- on.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, err := range []error{server.Close(ctx), inner.Close(ctx)} {
			if err != nil {
				t.Error(err)
			}
		}
		on.Stop()
		<-served
		if err := roster.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return f
}

// yield calls the tool of the one server of a configuration.
func yield(t *testing.T, text string) string {
	t.Helper()
	c, err := parse("public_variables = []\n[trusted]\nuser = 'ada'\n"+text, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	defer func() {
		if err := parts.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	catalog, err := parts.Roster.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := catalog.Find("farm__yield")
	if !ok {
		t.Fatalf("there is no tool: %+v", parts.Roster.Ensembles()[0].Snapshot())
	}
	if strings.Contains(string(tool.Definition().InputSchema), "farmer") {
		t.Errorf("a model sees %s", tool.Definition().InputSchema)
	}
	output, err := tool.Invoke(invoker.WithTrusted(ctx, parts.Trusted...), &invoker.Call{Arguments: []byte(`{"plot":"A1"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return output.Content[0].(canister.TextContent).Text
}

// A server over gRPC gets what its table says, over TLS and without, as a
// server of tools, as one of MCP and behind a sidecar.
func TestGRPCServersAreReachedAsWritten(t *testing.T) {
	const want = "A1 of ada, as [secret] says"
	const common = "token = 'env:DATABASE_TOKEN'\nmetadata = {x-team = 'growers'}\n"
	overTLS, folder := certificates(t)
	plain, safe := newFarm(t, nil), newFarm(t, overTLS)
	for name, test := range map[string]struct {
		farm *farm
		text string
		app  []string
	}{
		"tools": {
			plain, "address = '" + plain.address +
				"'\ntls = {plaintext = true}\ncategory = 'crops'\ncaller = 'us'\ntrusted = {arguments = {farmer = 'user'}, metadata = {x-user = 'user'}}\n",
			nil,
		},
		"TLS": {
			safe, "address = '" + safe.address + "'\ntls = {ca = '" + folder + "/ca.pem', certificate = '" + folder +
				"/ca.pem', key = '" + folder +
				"/key.pem'}\ncategory = 'crops'\ncaller = 'us'\ntrusted = {arguments = {farmer = 'user'}, metadata = {x-user = 'user'}}\n", nil,
		},
		"MCP": {
			plain, "address = '" + plain.address + "'\ntls = {plaintext = true}\nservice = 'mcp'\ntrusted = {arguments = {farmer = 'user'}}\n", nil,
		},
		"Dapr": {
			plain, "dapr = 'farm-app'\ncategory = 'crops'\ncaller = 'us'\ntrusted = {arguments = {farmer = 'user'}, metadata = {x-user = 'user'}}\n",
			[]string{"farm-app"},
		},
		"MCP through Dapr": {plain, "dapr = 'farm-app'\nservice = 'mcp'\ntrusted = {arguments = {farmer = 'user'}}\n", []string{"farm-app"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, port, _ := net.SplitHostPort(plain.address)
			t.Setenv("DAPR_GRPC_ENDPOINT", "")
			t.Setenv("DAPR_GRPC_PORT", port)
			if got := yield(t, "[grpc.farm]\n"+common+test.text); got != want {
				t.Errorf("the result is %q", got)
			}
			md, asked := test.farm.last()
			if !reflect.DeepEqual(md["x-team"], []string{"growers"}) || !reflect.DeepEqual(md["authorization"],
				[]string{"Bearer database-5553"}) || !reflect.DeepEqual(md["dapr-app-id"], test.app) {
				t.Errorf("the metadata is %v", md)
			}
			call, ok := asked.(*toolspb.ToolCallRequest)
			if strings.HasPrefix(name, "MCP") {
				if ok || (test.app != nil) != (len(md["dapr-stream"]) == 1) {
					t.Error("MCP is not spoken")
				}
				return
			}
			if !ok || call.GetCallerAgentId() != "us" || !reflect.DeepEqual(md["x-user"], []string{"ada"}) {
				t.Errorf("the call is %v with %v", asked, md)
			}
		})
	}
	plain.mu.Lock()
	defer plain.mu.Unlock()
	for _, asked := range plain.asked {
		if list, ok := asked.(*toolspb.ListToolsRequest); ok && list.GetCategory() != "crops" {
			t.Errorf("the category is %q", list.GetCategory())
		}
	}
}

// certificates returns the TLS of a server that asks for certificates, and a
// folder with ca.pem and key.pem, which vouch for both sides.
func certificates(t *testing.T) (server *tls.Config, folder string) {
	t.Helper()
	folder = t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err = grpctool.TLSFiles(filepath.Join(folder, "ca.pem"), filepath.Join(folder, "ca.pem"), filepath.Join(folder, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return server, folder
}

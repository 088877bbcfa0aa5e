// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestMain plays the server that tells its environment, for those that start
// this program as one.
func TestMain(m *testing.M) {
	switch os.Getenv("TELLTALE") {
	case "":
		os.Exit(m.Run())
	case "stillborn":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
		os.Exit(3)
	}
	server := telltale()
	if os.Getenv("TELLTALE") == "listless" {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					return nil, errors.New("cannot list with " + os.Getenv("TOKEN"))
				}
				return next(ctx, method, request)
			}
		})
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// telltale is a server with a tool that tells all it knows, one that fails
// with it, and one that dies of it.
func telltale() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "telltale", Version: "1"}, nil)
	all := strings.Join(os.Environ(), "\n") + strings.Join(os.Args, "\n")
	add := func(name string, run func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			result, err := run(ctx, request)
			return result, nil, err
		})
	}
	add("tell", func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: request.Params.GetProgressToken(), Progress: 1, Message: all})
		return &mcp.CallToolResult{
			Meta: mcp.Meta{"environment": os.Environ()},
			Content: []mcp.Content{
				&mcp.TextContent{Text: all},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "env://" + url.PathEscape(all), Blob: []byte(all)}},
				&mcp.ResourceLink{URI: "env://x?" + url.QueryEscape(all), Name: all},
			},
			StructuredContent: map[string]any{"environment": os.Environ(), all: base64.StdEncoding.EncodeToString([]byte(os.Getenv("TOKEN")))},
		}, nil
	})
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errors.New(all) })
	add("die", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, all)
		os.Exit(3)
		return nil, nil
	})
	return server
}

// vault hands out secrets under whatever name it is asked for, each with a
// marker of its own and characters that are written in many ways.
type vault struct {
	mu      sync.Mutex
	secrets map[string]string
}

func (v *vault) lookup(name string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.secrets == nil {
		v.secrets = map[string]string{}
	}
	v.secrets[name] = fmt.Sprintf(`planted/"%s"<&>`, strings.ToLower(name))
	return v.secrets[name], true
}

var base64Text = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}`)

// shows returns the marker of a secret that stands in text, in whatever form.
func shows(text string) string {
	for _, token := range base64Text.FindAllString(text, -1) {
		token = strings.NewReplacer("-", "+", "_", "/").Replace(token)
		for shift := range 4 {
			token := token[min(shift, len(token)):]
			if plain, err := base64.RawStdEncoding.DecodeString(token[:len(token)/4*4]); err == nil {
				text += "\n" + string(plain)
			}
		}
	}
	if i := strings.Index(text, "planted"); i >= 0 {
		return text[i:min(i+40, len(text))]
	}
	return ""
}

const everything = `
[model]
name = "m"
base_url = "@model"
api_key = "env:MODEL_KEY"
headers = {X-Team = "${MODEL_TEAM}", X-Key = "planted-literal-1"}
organization = "env:MODEL_ORGANIZATION"
extra_body = {note = "my ${MODEL_NOTE}"}
stream = false
max_retries = 1
[conversation]
exchanges = 3
[approval]
[[approval.rules]]
action = "ask"
tools = ["asked"]
[mcp.shell]
command = ["@program", "--key=${SHELL_ARGUMENT}"]
environment = {TELLTALE = "yes", TOKEN = "env:SHELL_TOKEN", API_KEY = "planted-literal-2", OTHER = "x${SHELL_OTHER}"}
[mcp.stillborn]
command = ["@program"]
environment = {TELLTALE = "stillborn", TOKEN = "env:STILLBORN_TOKEN"}
[mcp.listless]
command = ["@program"]
environment = {TELLTALE = "listless", TOKEN = "env:LISTLESS_TOKEN"}
[mcp.web]
url = "@web?key=${WEB_QUERY}"
headers = {Authorization = "Bearer ${WEB_TOKEN}"}
[mcp.refusing]
url = "@web/refuse?token=planted-literal-3"
headers = {Authorization = "Basic @userpass"}
[mcp.lost]
url = "http://me:planted-literal-5@127.0.0.1:1/${LOST_PATH}"
`

// talkative is an MCP server that answers with the headers and the address of
// the request, in its results and in its refusals.
func talkative() http.Handler {
	said := func(r *http.Request) string {
		_, password, _ := r.BasicAuth()
		return fmt.Sprint(r.Header, r.URL, r.URL.Query(), password)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "talkative", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "tell"}, func(_ context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text := fmt.Sprint(request.Extra.Header)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/refuse") {
			message, _ := json.Marshal(said(r))
			w.Header().Set("Www-Authenticate", strings.ReplaceAll(said(r), "\n", " "))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": %s}}`, message)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// careless is a model that asks for every tool, for the deadly one after the
// others, and then fails with all that it was sent.
func careless(t *testing.T) http.Handler {
	exchanges := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Note     string
			Messages json.RawMessage
			Tools    []struct{ Function struct{ Name string } }
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		if found := shows(string(request.Messages)); found != "" {
			t.Errorf("the model is sent %s", found)
		}
		w.Header().Set("Content-Type", "application/json")
		if exchanges++; exchanges > 2 {
			message, _ := json.Marshal(request.Note + fmt.Sprint(r.Header["Authorization"], r.Header["X-Team"],
				r.Header["X-Key"], r.Header["Openai-Organization"]))
			w.Header().Set("X-Request-Id", r.Header.Get("X-Team"))
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"error": {"message": %s, "code": %s}}`, message, message)
			return
		}
		var calls []string
		for i, tool := range request.Tools {
			if deadly := strings.HasSuffix(tool.Function.Name, "die"); deadly == (exchanges == 2) {
				calls = append(calls, fmt.Sprintf(`{"id": "c%d", "type": "function", "function": {"name": %q, "arguments": "{}"}}`, i, tool.Function.Name))
			}
		}
		fmt.Fprintf(w, `{"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [%s]}}]}`,
			strings.Join(calls, ","))
	})
}

// TestSecretsShowNowhere holds conversations whose servers, tools and model
// tell every secret that they were given, and looks for it in all that comes
// out.
func TestSecretsShowNowhere(t *testing.T) {
	web := httptest.NewServer(talkative())
	defer web.Close()
	model := httptest.NewServer(careless(t))
	defer model.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("@program", program, "@web", web.URL, "@model", model.URL,
		"@userpass", base64.StdEncoding.EncodeToString([]byte("me:planted-literal-4"))).Replace(everything)
	keys := &vault{}
	c, err := config.Parse("consort.toml", []byte(text), &config.Options{Lookup: keys.lookup})
	if err != nil {
		t.Fatal(err)
	}
	told, _ := keys.lookup("WEB_TOKEN")
	var out output
	parts, err := config.Assemble(c, &config.AssembleOptions{
		Logger:    out.logger(),
		Ensembles: []*ensemble.Ensemble{ensemble.Local("own", teller("panics", told), teller("asked", told))},
		Ask: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Decision{}, errors.New("cannot ask with " + told)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out.add(parts.Roster.Connect(ctx))
	talk := converse.New(parts.Model, parts.Roster, parts.Options)
	for range 2 { // the second begins with what the first has lost
		for event, err := range talk.Send(ctx, canister.Text("Tell me all.")) {
			out.add(event, err)
		}
	}
	for _, c := range talk.History() {
		line, err := canister.Marshal(c)
		out.add(string(line), c, err)
	}
	for _, e := range parts.Roster.Ensembles() {
		out.add(e.Snapshot(), e.Snapshot().LastError)
	}
	out.add(talk.Close(ctx), parts.Close(ctx), c, *c, parts.Options)
	for line := range strings.Lines(out.String()) {
		if found := shows(line); found != "" {
			t.Errorf("%s\nis in %.1500s", found, line)
		}
	}
	// Each has been told of: a mark stands in its place.
	for _, trace := range []string{
		"TOKEN=[secret]", "API_KEY=[secret]", "OTHER=x[secret]", "--key=[secret]", // results of the shell
		"stderr: ", "exit status 3", "OUTCOME_UNKNOWN", "Authorization:[[secret]]", "key=[secret]", `"event":"invocation_progressed"`,
		"cannot ask with [secret]", "exchange_retried", "panic", "my [secret]", "connection refused", "cannot list with [secret]",
	} {
		if !strings.Contains(out.String(), trace) {
			t.Errorf("%q is nowhere: the test does not get there", trace)
		}
	}
}

// telling is a tool of the program itself, which reports a text and panics with
// it.
type telling struct {
	definition invoker.Definition
	text       string
}

func teller(name, text string) invoker.Invoker {
	return &telling{invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type": "object"}`)}, text}
}

func (t *telling) Definition() *invoker.Definition { return &t.definition }

func (t *telling) Invoke(_ context.Context, call *invoker.Call) (invoker.Output, error) {
	call.Report(invoker.Progress{Done: 1, Message: t.text})
	panic(t.text)
}

// output is everything that comes out of a program.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) Sync() error { return nil }

func (o *output) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), o, zap.DebugLevel))
}

// add prints values in all the ways in which they may be printed.
func (o *output) add(values ...any) {
	for _, value := range values {
		if value == nil {
			continue
		}
		if event, ok := value.(converse.Event); ok {
			line, err := eventjson.Marshal(event)
			fmt.Fprintf(o, "%s %v\n", line, err)
		}
		fmt.Fprintf(o, "%v\n%+v\n%#v\n%s\n%q\n", value, value, value, value, value)
		if line, err := json.Marshal(value); err == nil {
			fmt.Fprintf(o, "%s\n", line)
		}
		var model *converse.ModelError
		if err, ok := value.(error); ok && errors.As(err, &model) {
			fmt.Fprintf(o, "%+v %v\n", *model, model.Err)
		}
	}
}

// TestEverySecretIsKnown has a variable of its own in every place of a file,
// and a literal wherever credentials may stand.
func TestEverySecretIsKnown(t *testing.T) {
	const text = `
import = ["m.json"]
public_variables = ["OPEN_REGION"]
[model]
name = "${A1}"
base_url = "https://x.example/${A2}?key=planted-literal-01&other=plain-literal-01"
headers = {A = "env:A3", Cookie = "a=1; planted-literal-02", B = "plain-literal-02"}
organization = "env:A4"
project = "env:A5"
extra_body = {a = ["${A6}"], api_key = "planted-literal-03", b = {secrets = ["planted-literal-04"]}, c = "plain-literal-03"}
response_format.schema = {a = "${A7}"}
api_key = "planted-literal-05"
[mcp.a]
command = ["x${A8}", "${A9}", "${NONE:-plain-literal-04}", "plain-literal-05", "${OPEN_REGION}", "${HOME}"]
environment = {B = "env:B1", GITHUB_TOKEN = "planted-literal-06", C = "plain-literal-06"}
directory = "${B2}"
settings = {a = "env:B3", password = "planted-literal-07"}
[mcp.b]
url = "https://planted-literal-08@${B4}.example/?secret=planted-literal-09"
headers = {Authorization = "Token planted-literal-10", X = "env:B5"}
[mcp.c]
url = "https://plain-literal-07:planted-literal-11@x.example"
enabled = false
[grpc.d]
address = "${D1}:1"
token = "planted-literal-14"
metadata = {a = "env:D2", x-api-key = "planted-literal-15", b = "plain-literal-08"}
tls = {ca = "/${D3}"}
settings = {a = "env:D4", password = "planted-literal-16"}
enabled = false
[grpc.e]
dapr = "${D5}"
`
	const imported = `{"mcpServers": {"i": {"command": "${C1}", "args": ["${env:C2}"], "env": {"A": "${C3}", "KEY": "planted-literal-12"}},
		"j": {"url": "https://${C4}", "headers": {"Authorization": "Bearer planted-literal-13"}}}}`
	values := map[string]string{}
	c, err := config.Parse("consort.toml", []byte(text), &config.Options{
		ReadFile: func(string) ([]byte, error) { return []byte(imported), nil },
		Lookup: func(name string) (string, bool) {
			if name == "NONE" {
				return "", false
			}
			if values[name] = "planted-" + strings.ToLower(name); strings.HasPrefix(name, "OPEN") || name == "HOME" {
				values[name] = "plain-" + name
			}
			return values[name], true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DAPR_API_TOKEN", "planted-dapr-token")
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	check := func(value string) {
		want := value
		if strings.HasPrefix(value, "planted") {
			want = redact.Mark
		}
		if got := parts.Redact(value); got != want {
			t.Errorf("%s becomes %s", value, got)
		}
	}
	for _, value := range values {
		check(value)
	}
	literals := regexp.MustCompile(`(planted|plain)-literal-\d\d`).FindAllString(text+imported, -1)
	for _, literal := range literals {
		check(literal)
	}
	if len(values) < 20 || len(slices.Compact(literals)) < 20 {
		t.Errorf("%d variables and %d literals", len(values), len(literals))
	}
	check("planted-dapr-token")
	check("Basic " + base64.StdEncoding.EncodeToString([]byte("x"))) // which nobody gave
}

func TestRedactWithoutSecrets(t *testing.T) {
	parts, err := config.Assemble(&config.Config{Model: &config.Model{
		Name: values.Plain("x"), BaseURL: values.Plain("http://x"), APIKey: values.Hidden("by hand, a secret"),
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := parts.Redact("by hand, a secret of no-one"); got != "[secret] of no-one" {
		t.Errorf("a value that is hidden by hand: %s", got)
	}
	parts, err = config.Assemble(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if parts.Redact("x") != "x" || parts.Options.Redact != nil {
		t.Error("something is redacted")
	}
}

// The value of each variable is redacted, wherever the file has it.
func TestVariablesEverywhere(t *testing.T) {
	keys := &vault{}
	c, err := config.Parse("consort.toml", []byte(`
[conversation]
spill = "${SPILL}"
[mcp.orders]
enabled = false
url = "https://orders.example.com/mcp"
roots = [{path = "${ROOT}"}]
[mcp.orders.oauth]
grant = "token_exchange"
issuer = "https://login.example.com"
client_id = "env:CLIENT_ID"
client_key = "env:CLIENT_KEY"
audience = "env:AUDIENCE"
[mcp.wiki]
enabled = false
url = "https://wiki.example.com/mcp"
tools = {read = {description = "reads"}}
settings = {deep = [{note = "my ${NOTE}"}]}
[mcp.wiki.oauth]
grant = "enterprise"
client_id = "gateway"
subject_token = "env:SUBJECT"
subject_type = "urn:ietf:params:oauth:token-type:id_token"
identity_provider = {issuer = "https://idp.example.com", client_id = "env:IDP_CLIENT", client_secret = "env:IDP_SECRET"}
`), &config.Options{Lookup: keys.lookup})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	if len(keys.secrets) != 9 {
		t.Errorf("the file has %d variables", len(keys.secrets))
	}
	for name, secret := range keys.secrets {
		if shown := parts.Redact("it is " + secret); shown != "it is [secret]" {
			t.Errorf("%s: %s", name, shown)
		}
	}
}

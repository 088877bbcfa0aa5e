// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/tomltext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// text is the output of a process so far.
type text struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}

// service is a run of consort serve that is under way.
type service struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr text
	said           io.Reader // standard output, from the beginning
	url            string    // over HTTP
}

// serve starts the command; with an address among the arguments, or in the file,
// it waits until it listens.
func serve(t *testing.T, overHTTP bool, args ...string) *service {
	t.Helper()
	return serveWith(t, run{}, overHTTP, args...)
}

func serveWith(t *testing.T, r run, overHTTP bool, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(r.limit, limit))
	t.Cleanup(cancel)
	s := &service{t: t, cmd: r.command(ctx, t, append([]string{"serve"}, args...)...)}
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.said = io.TeeReader(stdout, &s.stdout)
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("standard error of %s: %s", s.cmd, s.stderr.String())
		}
	})
	if overHTTP {
		address := regexp.MustCompile(`serving at (https?://\S+/mcp)\n`)
		waitFor(t, "an address: "+s.stderr.String(), func() bool { return address.MatchString(s.stderr.String()) })
		s.url = address.FindStringSubmatch(s.stderr.String())[1]
	}
	return s
}

// connect returns a session of the SDK's client, over HTTP with a token.
func (s *service) connect(token string) *mcp.ClientSession {
	s.t.Helper()
	var transport mcp.Transport = &mcp.IOTransport{Reader: io.NopCloser(s.said), Writer: s.stdin}
	if s.url != "" {
		transport = &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(token)}}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(s.t.Context(), transport, nil)
	if err != nil {
		s.t.Fatalf("%v\nstandard error: %s", err, s.stderr.String())
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// bearer sends a token with each request.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// ends waits for the process.
func (s *service) ends(want exit.Status) {
	s.t.Helper()
	io.Copy(io.Discard, s.said)
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != int(want) {
		s.t.Errorf("exit status %d, want %d; standard error: %s", got, want, s.stderr.String())
	}
	noProcessLeft(s.t)
}

func (s *service) signal(signal os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// supervised is the URL where the process tells how it does.
func (s *service) supervised() string {
	s.t.Helper()
	address := regexp.MustCompile(`health at (http://\S+)/health/mcp`).FindStringSubmatch(s.stderr.String())
	if address == nil {
		s.t.Fatalf("there is no health: %s", s.stderr.String())
	}
	return address[1]
}

// health returns the health report of the process.
func (s *service) health() string {
	s.t.Helper()
	response, err := http.Get(s.supervised() + "/health/mcp")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(told)
}

func toolNames(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// called is a result as a line: its text, and the code of a failure before it.
func called(t *testing.T, session *mcp.ClientSession, tool string, arguments string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return "error: " + err.Error()
	}
	line := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		form, _ := json.Marshal(result.Meta)
		code := regexp.MustCompile(`"code":"([A-Z_]+)"`).FindStringSubmatch(string(form))
		return strings.Join(append(code[1:], line), ": ")
	}
	return line
}

// forPerson passes the trusted value user to the server library.
const forPerson = "trusted = {arguments = {user_id = \"user\"}}\n"

// Over stdio the process serves the host that has started it: with our names,
// the trusted values of the file and of the command line, and nothing on
// standard output but the protocol.
func TestServeOverStdio(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson+"deny = [\"wait\"]\n")
	s := serve(t, false, "--config", file(t, "[trusted]\nuser = \"ada\"\n[log]\nlevel = \"debug\"\n", table, broken), "--trust", "user=grace")
	host := s.connect("")
	if names := toolNames(t, host); !slices.Equal(names, []string{"library__echo", "library__leak"}) {
		t.Errorf("the tools are %q", names)
	}
	for tool, err := range host.Tools(t.Context(), nil) {
		if form, _ := json.Marshal(tool); err != nil || strings.Contains(string(form), "user_id") {
			t.Errorf("a host sees %s (%v)", form, err)
		}
	}
	if got := called(t, host, "library__echo", `{"text":"hi"}`); got != `{"user_id":"grace","text":"hi"}` {
		t.Errorf("echo: %s", got)
	}
	if got := called(t, host, "library__echo", `{"user_id":"eve"}`); !strings.HasPrefix(got, "INVALID_ARGUMENTS: ") {
		t.Errorf("a forged identity: %s", got)
	}
	if got := called(t, host, "library__leak", `{}`); got != "EXECUTION_FAILED: it is [secret]" {
		t.Errorf("leak: %s", got)
	}
	read, err := host.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note:///secret"})
	if err != nil || read.Contents[0].Text != "The password is [secret]." {
		t.Errorf("the resource: %v, %+v", err, read)
	}
	prompt, err := host.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "library__greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Greet Ada, ." {
		t.Errorf("the prompt: %v, %+v", err, prompt)
	}
	s.stdin.Close()
	s.ends(exit.Done)
	for line := range strings.Lines(s.stdout.String()) {
		if message := (struct{ JSONRPC string }{}); json.Unmarshal([]byte(line), &message) != nil || message.JSONRPC != "2.0" {
			t.Errorf("standard output has the line %q", line)
		}
	}
	lacks(t, "what was written", s.stdout.String()+s.stderr.String(), password)
	contains(t, "the log", s.stderr.String(), "DEBUG", `"forged": ["user"]`)
	lacks(t, "the log", s.stderr.String(), "grace", `eve"`)
}

// Over HTTP the token says who a client is.
func TestServeToClientsWithTokens(t *testing.T) {
	table, _ := library(t, forPerson)
	trail := filepath.Join(t.TempDir(), "trail.jsonl")
	const ada, bob, nobody = "ada-0123456789abcdef", "bob-0123456789abcdef", "nobody-0123456789abcdef"
	t.Setenv("CONSORT_TEST_TOKEN", bob)
	s := serve(t, true, "--config", file(t, table, `
[trusted]
user = "root"
[audit]
file = "`+trail+`"
identity = ["user"]
[serve]
http = "127.0.0.1:0"
health = "127.0.0.1:0"
own_names = true
clients = [
	{token = "`+ada+`", trusted = {user = "ada"}},
	{token = "env:CONSORT_TEST_TOKEN", trusted = {user = "bob"}},
	{token = "`+nobody+`"},
]
`))
	for token, want := range map[string]string{ada: `{"user_id":"ada"}`, bob: `{"user_id":"bob"}`, nobody: "UNAUTHORIZED: "} {
		host := s.connect(token)
		if got := called(t, host, "echo", `{}`); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", token, got)
		}
		if got := called(t, host, "leak", `{}`); got != "EXECUTION_FAILED: it is [secret]" {
			t.Errorf("leak: %s", got)
		}
	}
	if got := called(t, s.connect(ada), "echo", `{"user_id":"bob"}`); !strings.HasPrefix(got, "INVALID_ARGUMENTS: ") {
		t.Errorf("ada as bob: %s", got)
	}
	for _, header := range []string{"", "Bearer wrong-0123456789abcdef", "Basic " + ada} {
		if got := post(t, s.url, header); got != http.StatusUnauthorized {
			t.Errorf("%q is answered with %d", header, got)
		}
	}
	contains(t, "the health", s.health(), `"ready":true`)
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
	records, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the trail", string(records), `"identity":{"user":"ada"}`, `"identity":{"user":"bob"}`, `"forged":["user"]`,
		`"ensemble":"library"`, `"asker":"mcp"`, "UNAUTHORIZED")
	lacks(t, "all that was written", s.stdout.String()+s.stderr.String()+string(records), password, ada, bob, nobody, "root")
	if s.stdout.String() != "" {
		t.Errorf("standard output: %q", s.stdout.String())
	}
}

// post sends a request with an Authorization, and returns the status.
func post(t *testing.T, url, authorization string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// readyz asks whether there may be calls; it returns the body if the answer has
// the status, and otherwise nothing.
func (s *service) readyz(status int) string {
	s.t.Helper()
	response, err := http.Get(s.supervised() + "/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != status {
		return ""
	}
	return string(text)
}

// The process is not ready before the required servers are connected, and when no server
// is left.
func TestServeIsNotReady(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	slow := fmt.Sprintf("[mcp.slow]\nrequired = true\nconnect_timeout = \"60s\"\n"+
		"command = [\"sh\", \"-c\", \"while ! test -e %s/go; do sleep 0.05; done; exec %s atlas\"]\n", folder, testserver)
	s := serve(t, true, "--http", "127.0.0.1:0", "--health", "127.0.0.1:0", "--config", file(t, slow))
	contains(t, "the reason", s.readyz(http.StatusServiceUnavailable), `"ready":false`, `\"slow\" is required and `)
	touch(filepath.Join(folder, "go"))
	waitFor(t, "readiness", func() bool { return s.readyz(http.StatusOK) != "" })
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)

	s = serve(t, true, "--http", "127.0.0.1:0", "--health", "127.0.0.1:0", "--config", file(t, broken))
	waitFor(t, "a failed start", func() bool {
		return strings.Contains(s.readyz(http.StatusServiceUnavailable), "no ensemble is ")
	})
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// A signal lets the calls under way finish, over either transport.
func TestServeFinishesItsCalls(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"http": {"--http", "127.0.0.1:0"}, "stdio": {"--stdio"}, "grpc": {"--grpc", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			table, folder := library(t, "")
			s := serve(t, name == "http", append(args, "--health", "127.0.0.1:0", "--config", file(t, table, "[serve]\nhttp = \"127.0.0.1:0\"\n"))...)
			host := s.host(name)
			result := make(chan string, 1)
			go func() { result <- called(t, host, "library__wait", `{}`) }()
			waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
			s.signal(syscall.SIGTERM)
			if name == "http" {
				waitFor(t, "a refusal", func() bool { return post(t, s.url, "") == http.StatusServiceUnavailable })
			}
			waitFor(t, "draining", func() bool { return strings.Contains(s.readyz(http.StatusServiceUnavailable), "draining") })
			touch(filepath.Join(folder, "go"))
			if got := <-result; got != "done" {
				t.Errorf("the call under way came to %s", got)
			}
			s.ends(exit.Done)
		})
	}
}

// A second signal waits for nothing.
func TestASecondSignalEndsServing(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"http": {"--http", "127.0.0.1:0"}, "stdio": nil, "grpc": {"--grpc", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			table, folder := library(t, "")
			s := serve(t, name == "http", append(args, "--config", file(t, table))...)
			host := s.host(name)
			result := make(chan string, 1)
			go func() { result <- called(t, host, "library__wait", `{}`) }()
			waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
			began := time.Now()
			s.signal(syscall.SIGINT)
			s.signal(syscall.SIGTERM)
			s.ends(exit.Failed)
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v to end", took)
			}
			if got := <-result; got == "done" {
				t.Errorf("the call came to %s", got)
			}
			contains(t, "standard error", s.stderr.String(), "stopped: ")
		})
	}
}

// The tool converse holds conversations with the model of the file, which act
// for whoever calls.
func TestServeTheConverser(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	s := serve(t, true, "--converse", "--http", "127.0.0.1:0", "--config", file(t, table, model(t,
		says("", calls("library__echo", `{"text":"x"}`)), expecting("You are ada.", `"user_id":"ada"`), expecting("Still.", "And now?")),
		"[serve]\nhttp = \"127.0.0.1:0\"\nclients = [{token = \"ada-0123456789abcdef\", trusted = {user = \"ada\"}}]\n[trusted]\nuser = \"root\"\n"))
	host := s.connect("ada-0123456789abcdef")
	if names := toolNames(t, host); !slices.Contains(names, "converse") || !slices.Contains(names, "library__echo") {
		t.Errorf("the tools are %q", names)
	}
	said := func(arguments string) (id, answer string) {
		result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "converse", Arguments: json.RawMessage(arguments)})
		if err != nil || result.IsError {
			t.Fatalf("%v, %+v", err, result)
		}
		form, _ := json.Marshal(result.StructuredContent)
		var answered struct{ Conversation, Answer string }
		if err := json.Unmarshal(form, &answered); err != nil {
			t.Fatal(err)
		}
		return answered.Conversation, answered.Answer
	}
	id, answer := said(`{"message":"Who am I?"}`)
	if answer != "You are ada." || id == "" {
		t.Errorf("conversation %q: %q", id, answer)
	}
	if _, answer := said(`{"message":"And now?","conversation":"` + id + `"}`); answer != "Still." {
		t.Errorf("it goes on with %q", answer)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// With rules of approval, serve prints that they do not apply to clients.
func TestServeSaysWhomApprovalIsFor(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]bool{
		"": false, "[approval]\ndefault = 'deny'\n": true, "[[approval.rules]]\naction = 'deny'\ntools = ['delete_*']\n": true,
	} {
		s := serve(t, true, "--config", file(t, rules), "--http", "127.0.0.1:0")
		s.signal(syscall.SIGTERM)
		s.ends(exit.Done)
		if said := strings.Contains(s.stderr.String(), "[approval]"); said != want {
			t.Errorf("%q: it says %s", rules, s.stderr.String())
		}
	}
}

func TestServingThatCannotBe(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	plain, served := file(t, table), file(t, table, "[serve]\nhttp = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef\"\n")
	for _, test := range []struct {
		says string
		args []string
	}{
		{"--stdio and --http exclude each other", []string{"--stdio", "--http", "127.0.0.1:0", "--config", plain}},
		{"--stdio and --grpc exclude each other", []string{"--stdio", "--grpc", "127.0.0.1:0", "--config", plain}},
		{"serving at 0.0.0.0:0: without a token, anyone who can reach this address", []string{"--grpc", "0.0.0.0:0", "--config", plain}},
		{
			"serving at 0.0.0.0:0: without a token, anyone who can reach this address can call the tools: set token, clients or oidc, listen at " +
				"127.0.0.1 only, or allow it with open = true", []string{"--http", "0.0.0.0:0", "--config", plain},
		},
		{`serving at 8080: expected an address such as "127.0.0.1:8080"`, []string{"--http", "8080", "--config", plain}},
		{
			"--trust: over HTTP and gRPC the token identifies a client; see serve.clients in docs/configuration.md",
			[]string{"--trust", "user=ada", "--config", served},
		},
		{"--trust: expected NAME=VALUE, such as --trust user=ada", []string{"--trust", "open-sesame", "--config", plain}},
		{"--trust user: expected a value that is not empty", []string{"--trust", "user=", "--config", plain}},
		{"--trust user: the environment variable is not set: CONSORT_TEST_ABSENT", []string{"--trust", "user=env:CONSORT_TEST_ABSENT", "--config", plain}},
		{"has no [model] table", []string{"--converse", "--config", plain}},
	} {
		o := consort(t, append([]string{"serve"}, test.args...)...).expect(t, exit.Usage)
		contains(t, strings.Join(test.args, " "), o.stderr, test.says)
		lacks(t, strings.Join(test.args, " "), o.stdout+o.stderr, "open-sesame", "0123456789abcdef")
	}
	busy := serve(t, true, "--http", "127.0.0.1:0", "--config", plain)
	address := strings.TrimSuffix(strings.TrimPrefix(busy.url, "http://"), "/mcp")
	for _, flag := range []string{"--http", "--grpc", "--health"} {
		o := consortBeside(t, "serve", flag, address, "--config", plain).expect(t, exit.Failed)
		contains(t, flag, o.stderr, flag+" "+address+": ", "address already in use", "choose another port")
		path := file(t, "[serve]\n"+strings.TrimPrefix(flag, "--")+" = "+tomltext.Quote(address)+"\n")
		o = consortBeside(t, "serve", "--config", path).expect(t, exit.Failed)
		contains(t, flag, o.stderr, path+":2:1: serve."+strings.TrimPrefix(flag, "--")+": ", "address already in use", "choose another port")
	}
	busy.signal(syscall.SIGTERM)
	busy.ends(exit.Done)
}

// consortBeside runs the command while another one runs.
func consortBeside(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := run{}.command(ctx, t, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// On a terminal, serve prints that it waits for a host.
func TestServingOnATerminal(t *testing.T) {
	t.Parallel()
	x := run{}.onTerminal(t, "serve", "--config", file(t, ""))
	x.expect("serving over standard input and output, for an MCP host")
	x.types("\x03")
	x.ends(exit.Done)
}

// What the README tells other hosts to start is a server.
func TestTheReadmesServerServes(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	var hosts struct {
		MCPServers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	if block == nil || json.Unmarshal(block[1], &hosts) != nil || len(hosts.MCPServers) != 1 {
		t.Fatalf("the README has %s", block)
	}
	for _, server := range hosts.MCPServers {
		for i, arg := range server.Args { // the file that the README shows above
			server.Args[i] = strings.Replace(arg, "/path/to/", "examples/fromtoml/", 1)
		}
		run{dir: root, stdin: ""}.consort(t, server.Args...).expect(t, exit.Done)
	}
}

// Of several servers there is one with our names, and one that is down takes
// nothing from the others.
func TestServeIsAGateway(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "allow = [\"ec*\", \"l*\"]\ndeny = [\"leak\"]\n")
	s := serve(t, true, "--http", "127.0.0.1:0", "--health", "127.0.0.1:0", "--config",
		file(t, table, atlas(0), broken, "[serve]\nname = \"gate\"\ntitle = \"A gate\"\ninstructions = \"Knock.\"\npage_size = 1\n"))
	waitFor(t, "a server that is ready before anybody asks", func() bool { return strings.Contains(s.health(), `"name":"library","state":"ready"`) })
	host := s.connect("")
	if names := toolNames(t, host); !slices.Equal(names, []string{"atlas__local_time", "atlas__weather", "library__echo"}) {
		t.Errorf("the tools are %q", names)
	}
	ask := run{}.command(t.Context(), t, "version")
	var said strings.Builder
	ask.Stdout = &said
	if err := ask.Run(); err != nil {
		t.Fatal(err)
	}
	info := host.InitializeResult()
	if info.ServerInfo.Name != "gate" || info.ServerInfo.Title != "A gate" || info.Instructions != "Knock." ||
		!strings.Contains(said.String(), " "+info.ServerInfo.Version+" ") {
		t.Errorf("it calls itself %+v and says %q", info.ServerInfo, info.Instructions)
	}
	if page, err := host.ListTools(t.Context(), nil); err != nil || len(page.Tools) != 1 || page.NextCursor == "" {
		t.Errorf("the first page: %v, %+v", err, page)
	}
	if got := called(t, host, "atlas__weather", `{"city":"Oslo"}`); !strings.Contains(got, "snow") {
		t.Errorf("the weather: %s", got)
	}
	if got := called(t, host, "library__leak", `{}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a tool that is not allowed: %s", got)
	}
	contains(t, "the health", s.health(), `"name":"library","state":"ready"`, `"name":"broken","state":"lost"`, "no licence")
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// The folder for the socket of consort reload needs the home directory, or XDG_STATE_HOME. Without them,
// as for a service of systemd, serve works, and says that consort reload does not find it. Reload says what to do.
func TestServeWithoutAHome(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"", "relative"} {
		folder := t.TempDir()
		path := writeAt(t, "[serve]\nhttp = \"127.0.0.1:0\"\n"+clientAda+"\n"+atlas(0), folder, "consort.toml")
		s := serveWith(t, run{dir: folder, env: []string{"HOME=" + home, "XDG_STATE_HOME="}}, true, "--config", path)
		if names := toolNames(t, s.connect("ada-0123456789abcdef")); len(names) == 0 {
			t.Errorf("HOME=%s: there are no tools", home)
		}
		waitFor(t, "a warning", func() bool {
			return strings.Contains(s.stderr.String(), "consort reload will not find this process; SIGHUP works")
		})
		s.signal(syscall.SIGTERM)
		s.ends(exit.Done)
		o := run{dir: folder, env: []string{"HOME=" + home, "XDG_STATE_HOME="}}.consort(t, "reload", "--config", path)
		contains(t, "reload", o.expect(t, exit.Usage).stderr, "there is no place for the sockets of running processes", "set HOME or XDG_STATE_HOME")
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
			t.Errorf("HOME=%s: the working directory has %v, %v", home, entries, err)
		}
	}
}

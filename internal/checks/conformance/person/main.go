// SPDX-License-Identifier: Apache-2.0

// Command person is a client under test for the authorization scenarios of the protocol's
// conformance suite: a person who uses the command. It writes a configuration for the server
// at the URL in its last argument, calls a tool with consort call, and types what consort
// prints: consort login, whose link it visits like a browser. The environment has
//
//	CONSORT                   the path of the command
//	MCP_CONFORMANCE_SCENARIO  the scenario; others than those of authorization are not tried
//	MCP_CONFORMANCE_CONTEXT   JSON: credentials of the client
//
// The suite judges the requests, so that the exit status is 0 unless nothing could be tried.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limit bounds each run of the command.
const limit = 60 * time.Second

// document identifies the client. The suite knows its content.
const document = "https://conformance-test.local/client-metadata.json"

// credentials identify a client that was registered beforehand.
type credentials struct {
	Name         string `json:"name"` // of the scenario
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Issuer       string `json:"issuer"`
	PrivateKey   string `json:"private_key_pem"`
	IDPClientID  string `json:"idp_client_id"`
	IDPToken     string `json:"idp_id_token"`
	IDPIssuer    string `json:"idp_issuer"`
	WorkloadJWT  string `json:"valid_jwt"`
}

func main() {
	if err := run(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(server string) error {
	if !strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		return nil
	}
	var given credentials
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	home, err := os.MkdirTemp("", "person")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	config, err := given.configure(server)
	if err != nil {
		return err
	}
	p := &person{home: home, given: given, file: filepath.Join(home, "consort.toml")}
	if err := os.WriteFile(p.file, []byte(config), 0o600); err != nil {
		return err
	}
	for range 4 { // each time, the server may want more rights
		if said, done := p.call(); done || !strings.Contains(said, "consort login server") {
			break
		}
		if !p.login() {
			break
		}
	}
	return nil
}

// configure returns the configuration for a server.
func (c credentials) configure(server string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp.server]\nurl = %q\nconnect_timeout = \"40s\"\n\n[mcp.server.oauth]\n", server)
	switch {
	case c.WorkloadJWT != "":
		issuer, err := issuerOf(server)
		fmt.Fprintf(&b, "grant = \"jwt_bearer\"\nsubject_token = \"env:WORKLOAD_TOKEN\"\nissuer = %q\n", issuer)
		if c.ClientID != "" {
			fmt.Fprintf(&b, "client_id = %q\n", c.ClientID)
		}
		return b.String(), err
	case c.IDPToken != "":
		fmt.Fprintf(&b, "grant = \"enterprise\"\nsubject_token = \"env:ID_TOKEN\"\nsubject_type = \"urn:ietf:params:oauth:token-type:id_token\"\n")
		fmt.Fprintf(&b, "identity_provider = {issuer = %q, client_id = %q}\n", c.IDPIssuer, c.IDPClientID)
	case c.PrivateKey != "":
		fmt.Fprintf(&b, "client_key = \"env:CLIENT_KEY\"\n")
	case c.ClientID == "":
		fmt.Fprintf(&b, "client_metadata_url = %q\n", document)
		return b.String(), nil
	}
	fmt.Fprintf(&b, "client_id = %q\n", c.ClientID)
	if strings.Contains(c.Name, "client-credentials") {
		fmt.Fprintf(&b, "grant = \"client_credentials\"\n")
	}
	if c.ClientSecret == "" {
		return b.String(), nil
	}
	if c.Issuer == "" { // a person would read it in the manual
		var err error
		if c.Issuer, err = issuerOf(server); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(&b, "client_secret = \"env:CLIENT_SECRET\"\nissuer = %q\n", c.Issuer)
	return b.String(), nil
}

// issuerOf returns the authorization server that a server names (RFC 9728).
func issuerOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/.well-known/oauth-protected-resource" + u.Path
	response, err := http.Get(u.String())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var metadata struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(response.Body).Decode(&metadata); err != nil || len(metadata.Servers) == 0 {
		return "", fmt.Errorf("the server names no authorization server: %w", err)
	}
	return metadata.Servers[0], nil
}

// person runs the command in a home of its own.
type person struct {
	home, file string
	given      credentials
}

func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv("CONSORT"), append(args, "--config", p.file)...)
	cmd.Env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "CLIENT_SECRET=" + p.given.ClientSecret,
		"CLIENT_KEY=" + p.given.PrivateKey, "ID_TOKEN=" + p.given.IDPToken, "WORKLOAD_TOKEN=" + p.given.WorkloadJWT}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// call calls the tool of the suite's servers, and returns the output of the command.
func (p *person) call() (said string, done bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := p.command(ctx, "call", "server", "test-tool", "{}").CombinedOutput()
	fmt.Fprintf(os.Stderr, "consort call: %v\n%s\n", err, out)
	return string(out), err == nil
}

// login logs in, and reports whether that succeeded.
func (p *person) login() bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	reader, writer := io.Pipe()
	cmd := p.command(ctx, "login", "server")
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			fmt.Fprintln(os.Stderr, "consort login:", lines.Text())
			if strings.HasPrefix(lines.Text(), "http") {
				visit(ctx, lines.Text())
			}
		}
	}()
	err := cmd.Wait()
	writer.Close()
	<-read
	return err == nil
}

// visit opens a page, which redirects to the command.
func visit(ctx context.Context, link string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err == nil {
		var response *http.Response
		if response, err = http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the browser:", err)
	}
}

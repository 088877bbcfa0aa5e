// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/installed"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

const grpcurlModule = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4"

// needGrpcurl builds grpcurl, a client of gRPC that knows services by their
// reflection alone. It is fetched where it is required, as in .ci/run; elsewhere the
// test is skipped unless the module is here already.
func needGrpcurl(t *testing.T) string {
	t.Helper()
	missing := fmt.Errorf("grpcurl is not here; go install %s gets it", grpcurlModule)
	if installed.Hidden() {
		t.Skip(missing)
	}
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", grpcurlModule)
	cmd.Env = append(raced.Unraced(), "GOBIN="+bin)
	if !installed.Required() {
		cmd.Env = append(cmd.Env, fromCache(t)...)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		installed.Missing(t, fmt.Errorf("%w: %w\n%s", missing, err, out))
	}
	return filepath.Join(bin, "grpcurl")
}

func TestGrpcurl(t *testing.T) {
	t.Parallel()
	grpcurl := needGrpcurl(t)
	s := serve(t, &grpctool.ServerOptions{Tools: []invoker.Invoker{echoTool(t)}, Token: "secret"})
	run := func(args ...string) string {
		t.Helper()
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), grpcurl, append([]string{"-plaintext", "-H", "authorization: Bearer secret"}, args...)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("grpcurl %q: %v\n%s", args, err, &stderr)
		}
		return string(out)
	}
	if services := run(s.address, "list"); !strings.Contains(services, grpctool.Service) || !strings.Contains(services, grpctool.OriginalService) {
		t.Errorf("it lists %s", services)
	}
	for _, service := range []string{grpctool.Service, grpctool.OriginalService} {
		if tools := run(s.address, service+"/ListTools"); !strings.Contains(tools, `"name": "echo"`) {
			t.Errorf("%s lists %s", service, tools)
		}
		var answer struct {
			Success    bool
			ResultJSON string `json:"resultJson"`
		}
		text := run("-d", `{"tool_name":"echo","arguments_json":"{\"text\":\"hello\"}"}`, s.address, service+"/CallTool")
		if err := json.Unmarshal([]byte(text), &answer); err != nil || !answer.Success || answer.ResultJSON != `"hello"` {
			t.Errorf("%s answers %s, %v", service, text, err)
		}
	}
}

// fromCache is an environment in which the go command takes modules only from its cache:
// they were verified when they were fetched.
func fromCache(t *testing.T) []string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"GOSUMDB=off", "GOPROXY=file://" + filepath.ToSlash(filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"))}
}

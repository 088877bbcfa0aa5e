// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var (
	block = regexp.MustCompile(`(?ms)^(message|enum|service) (\w+) \{\n(.*?)^\}`)
	field = regexp.MustCompile(`(?m)^  (repeated )?(\w+) (\w+) = (\d+);`)
	value = regexp.MustCompile(`(?m)^  (\w+) = (\d+);`)
	rpc   = regexp.MustCompile(`(?m)^  rpc (\w+)\((\w+)\) returns \((\w+)\);`)
)

// Our contract has all that the original one has, under the same numbers.
func TestContractContinuesTheOriginal(t *testing.T) {
	text, err := os.ReadFile("testdata/mcp/v1/mcp_tool.proto")
	if err != nil {
		t.Fatal(err)
	}
	ours := toolspb.File_consort_tools_v1_tools_proto
	found := 0
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		name, body := protoreflect.Name(b[2]), b[3]
		switch b[1] {
		case "message":
			message := ours.Messages().ByName(name)
			for _, f := range field.FindAllStringSubmatch(body, -1) {
				found++
				if message == nil || !sameField(message.Fields().ByName(protoreflect.Name(f[3])), f[1] != "", f[2], f[4]) {
					t.Errorf("%s.%s is not as in the original", name, f[3])
				}
			}
		case "enum":
			enum := ours.Enums().ByName(name)
			for _, v := range value.FindAllStringSubmatch(body, -1) {
				found++
				if enum == nil || enum.Values().ByName(protoreflect.Name(v[1])) == nil ||
					number(enum.Values().ByName(protoreflect.Name(v[1])).Number()) != v[2] {
					t.Errorf("%s.%s is not as in the original", name, v[1])
				}
			}
		case "service":
			service := ours.Services().ByName(name)
			for _, r := range rpc.FindAllStringSubmatch(body, -1) {
				found++
				if service == nil {
					t.Fatalf("there is no service %s", name)
				}
				method := service.Methods().ByName(protoreflect.Name(r[1]))
				if method == nil || string(method.Input().Name()) != r[2] || string(method.Output().Name()) != r[3] ||
					method.IsStreamingClient() || method.IsStreamingServer() {
					t.Errorf("%s.%s is not as in the original", name, r[1])
				}
			}
		}
	}
	if found != 21 {
		t.Errorf("%d fields, values and methods in the original, want 21", found)
	}
}

func sameField(f protoreflect.FieldDescriptor, repeated bool, kind, at string) bool {
	if f == nil || f.IsList() != repeated || number(f.Number()) != at {
		return false
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().Name()) == kind
	case protoreflect.EnumKind:
		return string(f.Enum().Name()) == kind
	}
	return f.Kind().String() == kind
}

func number[T ~int32](n T) string { return string(rune('0' + n)) } // all have one digit

// The generated code is up to date with .ci/proto, and compatible with the published one.
// The test needs the generators in Go's module cache.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../../.ci/proto", "check")
	cmd.Env = append(os.Environ(), fromCache(t)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Skipf("the generators are not here; .ci/proto fetches them\n%s", out)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

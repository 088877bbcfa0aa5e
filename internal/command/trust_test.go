// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
)

// Trusted values of the file and of the command line reach the tools that are
// called, and the arguments of whoever asks do not take their place.
func TestTrustedValuesReachTheTools(t *testing.T) {
	t.Setenv("CONSORT_TEST_USER", "mallory")
	table, _ := library(t, forPerson)
	trail := filepath.Join(t.TempDir(), "trail.jsonl")
	path := file(t, "public_variables = [\"CONSORT_TEST_USER\"]\n[trusted]\nuser = \"ada\"\n[audit]\nfile = \""+trail+"\"\nidentity = [\"user\"]\n", table)
	for want, trust := range map[string][]string{
		"ada":     nil,
		"grace":   {"--trust", "user=grace"},
		"a=b":     {"--trust", "user=grace", "--trust", "user=a=b", "--trust", "other=1"},
		"42":      {"--trust", `user="42"`},
		"null":    {"--trust", "user=null"},
		"mallory": {"--trust", "user=env:CONSORT_TEST_USER"},
	} {
		o := consort(t, append([]string{"call", "library", "echo", "--config", path}, trust...)...).expect(t, exit.Done)
		if o.stdout != `{"user_id":"`+want+"\"}\n" {
			t.Errorf("%s: %s", want, o.stdout)
		}
	}
	o := consort(t, "call", "library", "echo", "--trust", "user=42", "--config", path).expect(t, exit.Tool)
	contains(t, "a number", o.stderr, "INTERNAL")
	o = consort(t, "call", "library", "echo", `{"user_id":"eve"}`, "--config", path).expect(t, exit.Tool)
	contains(t, "a forged value", o.stderr, "INVALID_ARGUMENTS")
	o = consort(t, "call", "library", "echo", "--config", file(t, table)).expect(t, exit.Tool)
	contains(t, "without a value", o.stderr, "UNAUTHORIZED")

	records, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the trail", string(records), `"asker":"program"`, `"identity":{"user":"mallory"}`, `"forged":["user"]`, `"tool":"echo"`)

	o = consort(t, "tools", "--config", path).expect(t, exit.Done)
	contains(t, "the tools", o.stdout, "The tool echo (needs user)")
	lacks(t, "the tools", o.stdout, "The tool wait (")
	o = consort(t, "tools", "--json", "--config", path).expect(t, exit.Done)
	var list reports.ToolList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list.Tools[0].Needs) != 1 || list.Tools[0].Needs[0] != "user" {
		t.Errorf("%v: %s", err, o.stdout)
	}
}

// A secret of the file stays secret when the command line replaces its value, and values
// from variables are never shown.
func TestTrustedSecretsShowNowhere(t *testing.T) {
	t.Setenv("CONSORT_TEST_USER", "mallory-quokka")
	table, _ := library(t, forPerson)
	secret := file(t, "[trusted]\nuser = {value = \"x\", secret = true}\n", table)
	for _, args := range [][]string{
		{"--trust", "user=mallory-quokka", "--config", secret},
		{"--trust", "user=env:CONSORT_TEST_USER", "--config", file(t, table)},
	} {
		for _, more := range [][]string{nil, {"--json"}, {"--log-level", "debug"}} {
			o := consort(t, append(append([]string{"call", "library", "echo"}, args...), more...)...).expect(t, exit.Done)
			contains(t, "the answer", o.stdout, "[secret]")
			lacks(t, "what is shown", o.stdout+o.stderr, "quokka")
		}
	}
}

// In a conversation the trusted values go with every call of the model.
func TestConversationsCarryTrustedValues(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	for command, args := range map[string][]string{"run": {"Who am I?"}, "chat": nil} {
		path := file(t, table, model(t, says("", calls("library__echo", `{}`)), expecting("Grace.", `"user_id":"grace"`)), allows)
		o := run{stdin: "Who am I?\n"}.consort(t, append([]string{command, "--trust", "user=grace", "--config", path}, args...)...).expect(t, exit.Done)
		if o.stdout != "Grace.\n" {
			t.Errorf("%s: %q", command, o.stdout)
		}
	}
}

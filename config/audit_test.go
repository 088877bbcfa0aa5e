// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// inFolder reads a configuration that stands in a folder of its own.
func inFolder(t *testing.T, text string) (folder string, c *config.Config) {
	t.Helper()
	folder = t.TempDir()
	c, err := config.Parse(filepath.Join(folder, "consort.toml"), []byte(text), &config.Options{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	return folder, c
}

const audited = `
[log]
level = "info"
[trusted]
user = "ada"
host = "env:HOST"
token = {value = "token-5556-5556", secret = true}
[audit]
file = "trail.jsonl"
log = true
identity = ["user", "host", "token"]
omit = ["password"]
argument_bytes = 100
`

// The trail that a configuration asks for keeps what its rules allow, and no
// secret of the configuration.
func TestAssembledAuditTrail(t *testing.T) {
	folder, c := inFolder(t, audited)
	core, logged := observer.New(zapcore.InfoLevel)
	parts, err := config.Assemble(c, &config.AssembleOptions{Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := invoker.WithTrusted(t.Context(), parts.Trusted...)
	parts.Audit.Keep(ctx, audit.Record{Tool: "pack", Arguments: json.RawMessage(`{"password": "guess", "to": "example.host-5554"}`)})
	parts.Audit.Keep(ctx, audit.Record{Tool: "long", Arguments: json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)})
	if err := parts.Close(context.Background()); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "trail.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"user":"ada"`, `"tool":"pack"`, `[omitted]`, `[secret]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the trail lacks %s:\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"guess", "5554", "5556", strings.Repeat("x", 101)} {
		if strings.Contains(string(text), unwanted) {
			t.Errorf("the trail has %s:\n%s", unwanted, text)
		}
	}
	if entries := logged.FilterMessage("invocation").All(); len(entries) != 2 {
		t.Errorf("%d records were logged", len(entries))
	}
	// It was closed: what comes later is not kept.
	parts.Audit.Keep(ctx, audit.Record{Tool: "late"})
	if text, _ := os.ReadFile(filepath.Join(folder, "trail.jsonl")); strings.Contains(string(text), "late") {
		t.Error("the file is still open")
	}
}

func TestAuditTrailsThatCannotBe(t *testing.T) {
	_, quiet := inFolder(t, "audit = {log = true}\nlog = {level = 'info'}\n")
	_, absent := inFolder(t, "audit = {file = 'no/such/folder/trail.jsonl'}\n")
	for want, c := range map[string]*config.Config{
		"audit.log: records are logged at level info, but this log drops that level": quiet,
		"audit.file: ":                         absent,
		"audit: missing: expected file or log": {Audit: &config.Audit{}},
		`trusted."a b": the value is empty`:    {Trusted: map[string]values.Trusted{"a b": {}}},
		`trusted."": the name is empty`:        {Trusted: map[string]values.Trusted{"": {Value: values.Plain("x")}}},
		`trusted.a: the value is not JSON`:     {Trusted: map[string]values.Trusted{"a": {Value: values.Hidden("sesame-open"), JSON: true}}},
		`approval.default: unknown action "x"`: {Approval: config.Approval{Default: "x"}},
	} {
		_, err := config.Assemble(c, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// What was opened is closed when the rest cannot be.
func TestAFailedAssemblyLeavesNothingOpen(t *testing.T) {
	folder, c := inFolder(t, audited)
	c.Approval.Default = "never"
	if _, err := config.Assemble(c, &config.AssembleOptions{Logger: zap.NewExample()}); err == nil {
		t.Fatal("it was assembled")
	}
	path := filepath.Join(folder, "trail.jsonl")
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == path {
			t.Errorf("%s is still open", path)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package temporalserver starts Temporal's server for tests, with its four services in one
// process:
//
//	c, err := client.Dial(client.Options{HostPort: temporalserver.Start(t, temporalserver.SQLite)})
//
// .ci/temporal-server builds its programs. Without them, the test is skipped, or fails; see
// package installed.
package temporalserver

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/consort-go/consort/internal/testing/installed"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Where a server keeps its data.
const (
	// SQLite is a database file of the test.
	SQLite = "sqlite"
	// PostgreSQL are two databases of package pgtest, as in production.
	PostgreSQL = "postgresql"
)

var errMissing = errors.New("there is no server of Temporal: .ci/temporal-server builds it, in some minutes")

// folder returns the folder of the server's programs and its schema. If they are not
// installed, it ends the test.
func folder(t testing.TB) string {
	t.Helper()
	if cache, err := os.UserCacheDir(); err == nil && !installed.Hidden() {
		// The tool is built last.
		if found, _ := filepath.Glob(filepath.Join(cache, "consort-ci", "temporal-*", "temporal-sql-tool")); len(found) > 0 {
			return filepath.Dir(found[len(found)-1])
		}
	}
	if installed.Hidden() {
		t.Skip(errMissing)
	}
	installed.Missing(t, errMissing)
	return ""
}

//go:embed server.yaml dynamic.yaml
var forms embed.FS

// Start starts a server over [SQLite], which an empty store means, or [PostgreSQL], with the
// namespace default and the settings of docs/temporal.md, and returns its address. It ends
// with the test.
func Start(t testing.TB, store string) string {
	t.Helper()
	dir, root := folder(t), t.TempDir()
	values := map[string]any{"Root": root, "Shards": 1}
	switch store {
	case SQLite, "":
	case PostgreSQL:
		values["Shards"] = 32
		for key, schema := range map[string]string{"Default": "temporal", "Visibility": "visibility"} {
			values[key] = database(t, dir, schema)
		}
	default:
		t.Fatalf("a Temporal server keeps its data in %q or %q, not in %q", SQLite, PostgreSQL, store)
	}
	frontend := freePort(t)
	values["Frontend"] = [2]string{frontend, freePort(t)}
	for _, service := range []string{"History", "Matching", "Worker"} {
		values[service] = [2]string{freePort(t), freePort(t)}
	}
	values["HTTP"] = freePort(t)
	for _, name := range []string{"server.yaml", "dynamic.yaml"} {
		fill(t, name, filepath.Join(root, name), values)
	}
	return serve(t, exec.Command(filepath.Join(dir, "temporal-server"), "--root", root, "--config", ".", "--env", "server", "start"),
		net.JoinHostPort("127.0.0.1", frontend))
}

// database makes a database with a schema, and returns what the configuration says of it.
func database(t testing.TB, dir, schema string) map[string]string {
	t.Helper()
	dsn, err := url.Parse(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := dsn.User.Password()
	name := strings.TrimPrefix(dsn.Path, "/")
	for _, args := range [][]string{{"setup-schema", "-v", "0.0"}, {"update-schema", "-d", filepath.Join(dir, "schema", schema, "versioned")}} {
		tool := exec.Command(filepath.Join(dir, "temporal-sql-tool"), append([]string{
			"--plugin", "postgres12", "--ep", dsn.Hostname(), "-p", dsn.Port(), "-u", dsn.User.Username(), "--pw", password, "--db", name,
		}, args...)...)
		if out, err := tool.CombinedOutput(); err != nil {
			t.Fatalf("the schema %s: %v\n%s", schema, err, out)
		}
	}
	return map[string]string{"Address": dsn.Host, "User": dsn.User.Username(), "Password": password, "Database": name}
}

// freePort is a free port below 32768: greater ones do not fit into the column of
// PostgreSQL in which the server stores its members.
func freePort(t testing.TB) string {
	for range 1000 {
		port := strconv.Itoa(20000 + rand.N(12000))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port below 32768 is free")
	return ""
}

// fill makes a file from one of the forms.
func fill(t testing.TB, from, to string, values any) {
	t.Helper()
	form, err := template.ParseFS(forms, from)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := form.Execute(file, values); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server, and makes the namespace.
func serve(t testing.TB, cmd *exec.Cmd, address string) string {
	t.Helper()
	logs, err := os.Create(filepath.Join(t.TempDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	cmd.Stdout, cmd.Stderr = logs, logs
	Bind(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := namespace(address); err != nil {
		text, _ := os.ReadFile(logs.Name())
		t.Fatalf("the server: %v\n%s", err, text[max(0, len(text)-4000):])
	}
	return address
}

// namespace makes the namespace default, and waits until it can be used.
func namespace(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := client.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	for {
		err := func() error {
			names, err := client.NewNamespaceClient(options)
			if err != nil {
				return err
			}
			defer names.Close()
			err = names.Register(ctx, &workflowservice.RegisterNamespaceRequest{
				Namespace: "default", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
			})
			if _, there := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); err != nil && !there {
				return err
			}
			c, err := client.Dial(options)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{})
			return err
		}()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not serve: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

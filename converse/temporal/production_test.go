// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/consort-go/consort/converse/temporal/internal/devserver"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

// startEither starts the production server of a folder, or, if that is "dev" or
// empty, a development server.
func startEither(t testing.TB, dir string) string {
	t.Helper()
	if dir == "" || dir == "dev" {
		return startServer(t)
	}
	return startProduction(t, dir)
}

// startProduction starts the production server over PostgreSQL, with 32 shards and the
// settings of docs/temporal.md, and returns its address. The server's programs are built
// by .ci/temporal-server production in dir.
func startProduction(t testing.TB, dir string) string {
	t.Helper()
	root := t.TempDir()
	values := map[string]any{"Root": root}
	for key, schema := range map[string]string{"Default": "temporal", "Visibility": "visibility"} {
		dsn, err := url.Parse(pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		password, _ := dsn.User.Password()
		database := strings.TrimPrefix(dsn.Path, "/")
		values[key] = map[string]string{"Address": dsn.Host, "User": dsn.User.Username(), "Password": password, "Database": database}
		for _, args := range [][]string{{"setup-schema", "-v", "0.0"}, {"update-schema", "-d", filepath.Join(dir, "schema", schema, "versioned")}} {
			tool := exec.Command(filepath.Join(dir, "temporal-sql-tool"), append([]string{
				"--plugin", "postgres12", "--ep", dsn.Hostname(), "-p", dsn.Port(), "-u", dsn.User.Username(), "--pw", password, "--db", database,
			}, args...)...)
			if out, err := tool.CombinedOutput(); err != nil {
				t.Fatalf("the schema %s: %v\n%s", schema, err, out)
			}
		}
	}
	for _, service := range []string{"Frontend", "History", "Matching", "Worker"} {
		values[service] = [2]string{lowPort(t), lowPort(t)}
	}
	values["HTTP"] = lowPort(t)
	for _, name := range []string{"server.yaml", "dynamic.yaml"} {
		fill(t, filepath.Join("testdata", "production", name), filepath.Join(root, name), values)
	}
	return serve(t, exec.Command(filepath.Join(dir, "temporal-server"), "--root", root, "--config", ".", "--env", "server", "start"),
		net.JoinHostPort("127.0.0.1", values["Frontend"].([2]string)[0]))
}

// lowPort is a free port below 32768: greater ones do not fit into the column of
// PostgreSQL in which the server stores its members.
func lowPort(t testing.TB) string {
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

// fill makes a file from a template.
func fill(t testing.TB, from, to string, values any) {
	t.Helper()
	form, err := template.ParseFiles(from)
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

// serve starts a production server, and makes the namespace.
func serve(t testing.TB, cmd *exec.Cmd, address string) string {
	t.Helper()
	logs, err := os.Create(filepath.Join(t.TempDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	cmd.Stdout, cmd.Stderr = logs, logs
	devserver.Bind(cmd)
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
	options := client.Options{HostPort: address, Logger: log.NewStructuredLogger(quiet)}
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

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	isServing  = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
)

// healthGRPC returns a client of the health service.
func (s *service) healthGRPC() healthpb.HealthClient {
	s.t.Helper()
	connection, err := grpc.NewClient(s.overGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { connection.Close() })
	return healthpb.NewHealthClient(connection)
}

// watchGRPC returns a function that waits for the next word of the process, over
// gRPC, on whether it takes work.
func (s *service) watchGRPC(name string) func(want healthpb.HealthCheckResponse_ServingStatus) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	s.t.Cleanup(cancel)
	stream, err := s.healthGRPC().Watch(ctx, &healthpb.HealthCheckRequest{Service: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return func(want healthpb.HealthCheckResponse_ServingStatus) {
		s.t.Helper()
		if got, err := stream.Recv(); err != nil || got.Status != want {
			s.t.Fatalf("%q is %v, want %v (%v)", name, got.GetStatus(), want, err)
		}
	}
}

// Over gRPC too, the process is not ready before the required servers are connected,
// during shutdown, and when no server is left.
func TestServeIsNotReadyOverGRPC(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", grpctool.Service} {
		t.Run("service "+name, func(t *testing.T) {
			table, folder := library(t, "")
			slow := fmt.Sprintf("[mcp.slow]\nrequired = true\nconnect_timeout = \"60s\"\n"+
				"command = [\"sh\", \"-c\", \"while ! test -e %s/connect; do sleep 0.05; done; exec %s atlas\"]\n", folder, testserver)
			s := serve(t, false, "--grpc", "127.0.0.1:0", "--config", file(t, table, slow))
			is := s.watchGRPC(name)
			is(notServing)
			touch(filepath.Join(folder, "connect"))
			is(isServing)

			host := s.connectGRPC("")
			result := make(chan string, 1)
			go func() { result <- called(t, host, "library__wait", `{}`) }()
			waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
			s.signal(syscall.SIGTERM)
			is(notServing)
			touch(filepath.Join(folder, "go"))
			if got := <-result; got != "done" {
				t.Errorf("the call under way came to %s", got)
			}
			s.ends(exit.Done)
		})
	}
}

// When its only server is lost, which is required, the process is not ready either, until the server
// has connected again by itself.
func TestServeOverGRPCWithoutServers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	only := fmt.Sprintf("[mcp.only]\nrequired = true\npark_after = 0\ncommand = [\"sh\", \"-c\", \"test -e %[1]s/broken && exit 1; echo $$ > %[1]s/process; exec %[2]s atlas\"]\n",
		folder, testserver)
	s := serve(t, false, "--grpc", "127.0.0.1:0", "--config", file(t, only))
	host := s.connectGRPC("")
	if names := toolNames(t, host); len(names) == 0 {
		t.Fatal("there is no tool")
	}
	health := s.healthGRPC()
	waitFor(t, "readiness", func() bool {
		got, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err == nil && got.Status == isServing
	})
	is := s.watchGRPC("")
	is(isServing)
	touch(filepath.Join(folder, "broken"))
	text, err := os.ReadFile(filepath.Join(folder, "process"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	is(notServing)
	if err := os.Remove(filepath.Join(folder, "broken")); err != nil {
		t.Fatal(err)
	}
	is(isServing)
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/internal/testing/sidecar"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The tools of mcpadapter/grpctool/testdata/server.py, in Go.
type (
	whichFarmer struct {
		FarmerID string `json:"farmer_id"`
	}
	farmer struct {
		FarmerID string `json:"farmer_id"`
		Name     string `json:"name"`
		AskedBy  string `json:"asked_by"`
	}
)

// farmServer is our own server of these tools.
func farmServer(t *testing.T, seen *telemetry.Telemetry) (address string) {
	t.Helper()
	get, err := invoker.New("get_farmer", "Finds a farmer.", func(_ context.Context, which whichFarmer) (farmer, error) {
		if !strings.HasPrefix(which.FarmerID, "WM-") {
			return farmer{}, invoker.Failf(invoker.InvalidArguments, "farmer_id must begin with WM-")
		}
		return farmer{FarmerID: which.FarmerID, Name: "Wanjikũ"}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	search, err := invoker.New("search_notes", "Searches notes.", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{get, search}, Telemetry: seen}).Serve)
}

// farmSidecar forwards calls to the server at an address.
func farmSidecar(t *testing.T, address string) (port string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	server := sidecar.New("", map[string]*grpc.ClientConn{"plantation-mcp": conn})
	_, port, err = net.SplitHostPort(listen(t, func(ctx context.Context, listener net.Listener) error {
		defer context.AfterFunc(ctx, server.Stop)()
		if err := server.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// farmInPython is the server that is generated from the original contract.
func farmInPython(t *testing.T) (address string) {
	t.Helper()
	folder := filepath.Join("..", "..", "..", "mcpadapter", "grpctool", "testdata")
	return realservers.NeedPython(t, folder, "mcp/v1/mcp_tool.proto").Serve(filepath.Join(folder, "server.py"), "farm").Address
}

// modelVariable makes this program a server of a scripted model.
const modelVariable = "CONSORT_TEST_MODEL"

// launchModel starts the model of the farm as a process of its own.
func launchModel(t *testing.T) (url string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-script", filepath.Join("testdata", "farm.json"))
	cmd.Env = append(os.Environ(), modelVariable+"=1")
	process, err := openaiserver.Launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	})
	return process.URL
}

// built is the command.
var built = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "observed-")
	if err != nil {
		return "", err
	}
	leftOver = folder
	command := filepath.Join(folder, "consort")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", command, "./cmd/consort")
	build.Dir = filepath.Join("..", "..", "..") // the module of the command
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return command, nil
})

// leftOver is the folder that is removed when all tests have run.
var leftOver string

// consort runs the command and returns its two outputs.
func consort(t *testing.T, environment []string, args ...string) (stdout, stderr string) {
	t.Helper()
	command, err := built()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(cleanEnvironment(), environment...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &notes)
	}
	return out.String(), notes.String()
}

// cleanEnvironment is the environment of the test, without variables that affect the
// command.
func cleanEnvironment() (all []string) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "OTEL_") && !strings.HasPrefix(name, "DAPR_") && name != "NO_COLOR" && name != "COLUMNS" {
			all = append(all, variable)
		}
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"google.golang.org/grpc/codes"
)

// The examples of the semantic conventions for gRPC are among these.
func TestServerAt(t *testing.T) {
	for target, want := range map[string]telemetry.Peer{
		"grpc.io:50051":                     {Transport: "tcp", Address: "grpc.io", Port: 50051},
		"grpc.io":                           {Transport: "tcp", Address: "grpc.io"},
		"[::1]:5000":                        {Transport: "tcp", Address: "::1", Port: 5000},
		"dns://1.2.3.4/grpc.io:50051":       {Transport: "tcp", Address: "grpc.io", Port: 50051},
		"dns:///grpc.io":                    {Transport: "tcp", Address: "grpc.io"},
		"dns:grpc.io:50051":                 {Transport: "tcp", Address: "grpc.io", Port: 50051},
		"passthrough:///10.0.0.1:1":         {Transport: "tcp", Address: "10.0.0.1", Port: 1},
		"unix:///run/tools.sock":            {Transport: "unix", Address: "/run/tools.sock"},
		"unix:/run/tools.sock":              {Transport: "unix", Address: "/run/tools.sock"},
		"unix-abstract:tools":               {Transport: "unix", Address: "tools"},
		"zk://zookeeper:2181/my-server":     {Transport: "tcp", Address: "zk://zookeeper:2181/my-server"},
		"me:pass@grpc.io:50051":             {Transport: "tcp", Address: "grpc.io", Port: 50051},
		"dns:///me:pass@grpc.io":            {Transport: "tcp", Address: "grpc.io"},
		"https://me:pass@grpc.io/?token=t":  {Transport: "tcp", Address: "https://[secret]@grpc.io/?token=[secret]"},
		"ipv4:198.51.100.1:50,198.51.1.2:5": {Transport: "tcp", Address: "ipv4:198.51.100.1:50,198.51.1.2:5"},
	} {
		want.Network, want.System = "grpc", "grpc"
		if got := serverAt(target); got != want {
			t.Errorf("%s: %+v", target, got)
		}
	}
}

func TestTraceIDs(t *testing.T) {
	for text, want := range map[string]bool{
		"0af7651916cd43dd8448eb211c80319c":    true,
		"0AF7651916CD43DD8448EB211C80319C":    false,
		"0af7651916cd43dd8448eb211c80319":     false,
		"0af7651916cd43dd8448eb211c80319c00":  false,
		strings.Repeat("0", 32):               false,
		"zaf7651916cd43dd8448eb211c80319c":    false,
		"":                                    false,
		"0af76519-16cd-43dd-8448-eb211c80319": false,
	} {
		if isTraceID(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

func TestStatusNames(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.OK: "OK", codes.Canceled: "CANCELLED", codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.Unauthenticated: "UNAUTHENTICATED", 99: "99",
	} {
		if got := statusName(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package grpctool

import "testing"

// The forms of DAPR_GRPC_ENDPOINT (Dapr: sidecar endpoint TLS proposal).
func TestSidecarAddress(t *testing.T) {
	for _, c := range []struct {
		endpoint, port, target string
		plaintext              bool
	}{
		{"", "", "127.0.0.1:50001", true},
		{"", "3500", "127.0.0.1:3500", true},
		{"https://sidecar.example", "3500", "sidecar.example:443", false},
		{"https://sidecar.example:4443", "", "sidecar.example:4443", false},
		{"http://sidecar.example", "", "sidecar.example:80", true},
		{"sidecar.example:4443", "", "sidecar.example:4443", true},
		{"sidecar.example:4443?tls=true", "", "sidecar.example:4443", false},
		{"dns://1.1.1.1/sidecar.example:4443?tls=true", "", "dns://1.1.1.1/sidecar.example:4443", false},
		{"http://[::1]:5000", "", "[::1]:5000", true},
		{"unix:///run/dapr.sock", "", "unix:///run/dapr.sock", true},
		{"unix:/run/dapr.sock", "", "unix:/run/dapr.sock", true},
	} {
		target, plaintext, err := sidecar(c.endpoint, c.port)
		if err != nil || target != c.target || plaintext != c.plaintext {
			t.Errorf("%q with port %q: %q, plaintext %t, %v", c.endpoint, c.port, target, plaintext, err)
		}
	}
}

func TestIsLocal(t *testing.T) {
	for target, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "unix:/run/a": true, "unix-abstract:a": true,
		"dns:///localhost:1": true, "dns://8.8.8.8/localhost:1": true, "passthrough:///127.0.0.1:1": true,
		"10.0.0.1:1": false, "localhost.example.com:1": false, "dns:///tools:1": false, "tools": false, "0.0.0.0:1": false, "": false,
	} {
		if got := IsLocal(target); got != want {
			t.Errorf("IsLocal(%q) is %t", target, got)
		}
	}
}

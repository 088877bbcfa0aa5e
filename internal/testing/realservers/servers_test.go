// SPDX-License-Identifier: Apache-2.0

package realservers_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	how string
}

func (r *recorder) Helper() {}
func (r *recorder) Skip(args ...any) {
	r.how = "skip: " + args[0].(error).Error()
	panic(r)
}
func (r *recorder) Fatal(args ...any) {
	r.how = "fatal: " + args[0].(error).Error()
	panic(r)
}

func TestNeedSaysHowToGetThem(t *testing.T) {
	for _, tt := range []struct{ required, want string }{
		{"", "skip: "},
		{"required", "fatal: "},
		{"none", "skip: "},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Setenv("CONSORT_NPM", t.TempDir())
			t.Setenv("CONSORT_REAL", tt.required)
			r := &recorder{TB: t}
			func() {
				defer func() { _ = recover() }()
				realservers.Need(r)
			}()
			if !strings.HasPrefix(r.how, tt.want) || !strings.Contains(r.how, ".ci/install-servers") {
				t.Errorf("Need ended the test with %q", r.how)
			}
		})
	}
}

func TestServersEndWithTheirTest(t *testing.T) {
	servers := realservers.Need(t)
	var hosts []string
	t.Run("start", func(t *testing.T) {
		for _, start := range []func(testing.TB) string{servers.EverythingHTTP, servers.EverythingSSE} {
			u, err := url.Parse(start(t))
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, u.Host)
		}
	})
	for _, host := range hosts {
		if conn, err := net.Dial("tcp", host); err == nil {
			conn.Close()
			t.Errorf("the server at %s still runs", host)
		}
	}
}

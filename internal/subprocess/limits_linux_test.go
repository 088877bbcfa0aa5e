// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/mcptest"
)

// limited is a shell that is told by a first line that its limits are set.
func limited(limits Limits, script string) Command {
	argv := []string{"sh", "-c", "read line; " + script}
	return Command{Name: "limited", Argv: argv, Limits: limits}
}

// The server and its children have the limits; other limits are those of this program.
func TestLimitsAreSeen(t *testing.T) {
	const tell = `sh -c 'echo "{\"jsonrpc\":\"2.0\",\"method\":\"$(ulimit -n) $(ulimit -Hn) $(ulimit -v) $(ulimit -t) $(ulimit -Ht)\"}"; cat'`
	own := ownLimits(t)
	for _, test := range []struct {
		limits Limits
		want   []string // files, hard, KiB, seconds, hard
	}{
		{Limits{}, own},
		{Limits{OpenFiles: 64}, []string{"64", "64", own[2], own[3], own[4]}},
		{Limits{Memory: 1 << 30}, []string{own[0], own[1], "1048576", own[3], own[4]}},
		{Limits{CPU: 90*time.Second + time.Nanosecond}, []string{own[0], own[1], own[2], "91", "92"}},
		{Limits{Memory: 2 << 30, OpenFiles: 65, CPU: time.Minute}, []string{"65", "65", "2097152", "60", "61"}},
	} {
		p, conn := launch(t, limited(test.limits, tell))
		msg, err := roundTrip(t, conn, 1, "ping", nil)
		if err != nil {
			t.Fatalf("%+v: %v", test.limits, err)
		}
		if got, want := msg.Method, strings.Join(test.want, " "); got != want {
			t.Errorf("%+v: the server sees %s, want %s", test.limits, got, want)
		}
		mustClose(t, p)
	}
}

// ownLimits asks a child without limits of its own.
func ownLimits(t *testing.T) []string {
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -n; ulimit -Hn; ulimit -v; ulimit -t; ulimit -Ht").Output()
	own := strings.Fields(string(out))
	if err != nil || len(own) != 5 {
		t.Fatalf("%q, %v", out, err)
	}
	return own
}

// A server that reaches a limit is lost, and the error says how it ended.
func TestLimitsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits Limits
		script string
		want   string
	}{
		"CPU":             {Limits{CPU: time.Second}, "while :; do :; done", `server "limited" exited: signal: CPU time limit exceeded`},
		"CPU, not heeded": {Limits{CPU: time.Second}, "trap '' XCPU; while :; do :; done", `server "limited" exited: signal: killed`},
		"open files": {
			Limits{OpenFiles: 8}, "for fd in 3 4 5 6 7 8 9; do eval \"exec $fd</dev/null\" || exit; done; cat",
			`server "limited" exited: exit status 2; stderr: `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, conn := launch(t, limited(test.limits, test.script))
			_, err := roundTrip(t, conn, 1, "ping", nil)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("err = %v\nwant  %s", err, test.want)
			}
			mustClose(t, p)
		})
	}
}

// A server whose limit is refused does not run without it.
func TestLimitRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	p, err := limited(Limits{OpenFiles: math.MaxInt}, "cat").Start(t.Context())
	if err == nil {
		p.Kill()
		t.Fatal("it started")
	}
	if want := `starting server "limited": limiting its open files: operation not permitted: `; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %v\nwant  %s", err, want)
	}
}

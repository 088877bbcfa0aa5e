// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// processKinds returns the faults of the process as a whole.
func processKinds() []kind {
	return []kind{
		{Info{"die", "The process writes Text to stderr and ends with Status. A Server in the same process stops serving: it refuses new connections and cuts existing ones, until Restart.",
			anywhere(), anywhere()}, (*occasion).die},
		{Info{"silence", "The request is never answered. At the start: no request is ever answered.",
			append(asked(), "start"), append(asked(), "start")}, (*occasion).hang},
		{Info{"slow", "The server continues after Delay (1s), unless the client cancelled. At the start: a slow start.",
			append(asked(), "start"), append(asked(), "start")}, slow},
		{Info{"flood-stderr", "Size bytes (10 MiB) are written to stderr.",
			anywhere(), nil}, floodStderr},
		{Info{"ignore-term", "From now on neither SIGTERM, nor an interrupt, nor the end of stdin ends the process. Children that it starts later ignore the signals too.",
			anywhere(), nil}, ignoreTerm},
		{Info{"stop-reading", "Stdin is no longer read, and its end is not noticed.",
			anywhere(), nil}, stopReading},
		{Info{"leave-child", "A child process in the same process group, without the pipes, lives for Delay (1m) regardless of the server. The ledger contains its id. It runs the command sleep.",
			anywhere(), nil}, leaveChild},
		{Info{"leave-child-holding-pipes", "The same, and the child inherits stdin, stdout and stderr of the server, so that they stay open when the server ends.",
			anywhere(), nil}, leaveChildHoldingPipes},
	}
}

func slow(o *occasion) bool { return o.pause(cmp.Or(o.rule.Delay, time.Second)) }

func floodStderr(o *occasion) bool {
	w := bufio.NewWriter(o.server.stderr)
	_ = errors.Join(junk(cmp.Or(o.rule.Size, 10<<20))(w), w.Flush()) // ignores whether stderr is read
	return true
}

func ignoreTerm(o *occasion) bool {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	o.server.set(&o.server.stubborn)
	return true
}

func stopReading(o *occasion) bool {
	o.server.set(&o.server.deaf)
	return true
}

func leaveChild(o *occasion) bool             { return o.child(nil, nil, nil) }
func leaveChildHoldingPipes(o *occasion) bool { return o.child(os.Stdin, os.Stdout, os.Stderr) }

// child starts a process without waiting for it. If it cannot be started, the server
// ends: a test that relies on the child would be meaningless.
func (o *occasion) child(stdin io.Reader, stdout, stderr io.Writer) bool {
	seconds := cmp.Or(o.rule.Delay, time.Minute).Seconds()
	cmd := exec.Command("sleep", strconv.FormatFloat(seconds, 'f', -1, 64))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(o.server.stderr, "faultserver: leave a child: %v\n", err)
		o.server.end(1)
		return false
	}
	pid := cmd.Process.Pid
	_ = cmd.Process.Release()
	return o.server.record(Entry{Kind: KindChild, Child: pid})
}

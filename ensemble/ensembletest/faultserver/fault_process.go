// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bufio"
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
		{Info{"die", "The process ends with Status, after Text on stderr. A Server in the same process goes off the air: it refuses connections and cuts those there are, until Restart.",
			anywhere(), anywhere()}, (*occasion).die},
		{Info{"silence", "The request is never answered. At the start nothing ever is.",
			append(asked(), "start"), append(asked(), "start")}, (*occasion).hang},
		{Info{"slow", "The server goes on after Delay (1s), unless the client cancelled. At the start this is a slow start.",
			append(asked(), "start"), append(asked(), "start")}, slow},
		{Info{"flood-stderr", "Size bytes (10 MiB) are written on stderr.",
			anywhere(), nil}, floodStderr},
		{Info{"ignore-term", "From now on neither SIGTERM, nor an interrupt, nor the end of stdin ends the process. Children that it leaves later ignore the signals too.",
			anywhere(), nil}, ignoreTerm},
		{Info{"stop-reading", "No more of stdin is read, and its end goes unnoticed.",
			anywhere(), nil}, stopReading},
		{Info{"leave-child", "A child process of the same process group, with no pipes, lives for Delay (1m) whatever becomes of the server. The ledger has its id. It runs the command sleep.",
			anywhere(), nil}, leaveChild},
		{Info{"leave-child-holding-pipes", "The same, and the child holds stdin, stdout and stderr of the server, so that those do not end with it.",
			anywhere(), nil}, leaveChildHoldingPipes},
	}
}

func slow(o *occasion) bool { return o.pause(o.rule.delay(time.Second)) }

func floodStderr(o *occasion) bool {
	w := bufio.NewWriter(o.server.stderr)
	_ = errors.Join(junk(o.rule.size(10<<20))(w), w.Flush()) // ignores whether stderr is read
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
	seconds := o.rule.delay(time.Minute).Seconds()
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

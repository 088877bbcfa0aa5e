// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	defaultGrace      = 2 * time.Second
	defaultMaxMessage = 16 << 20

	// settle is how long a process that is ending may stay silent before the wait for
	// its exit status and output stops; maxSettle bounds that wait in all. The pipes
	// close before the exit status is known, and a grandchild may keep them open.
	settle    = time.Second
	maxSettle = 5 * time.Second
	// unkillable is how long closing waits after SIGKILL for a process that is in an
	// uninterruptible system call.
	unkillable = 5 * time.Second
)

// command describes a server to run as a subprocess. Each callback is called from a
// goroutine of the process, one call at a time; while it blocks, the server's output is
// not read.
type command struct {
	name string   // name of the server, for errors
	argv []string // argv[0] is looked up in the PATH of env
	env  []string // complete; nil means safeEnv(nil)
	dir  string   // "" means the directory of this program

	limits     ResourceLimits
	grace      time.Duration // for each step of closing; 0 means 2 s
	maxMessage int           // bounds one message from the server, in bytes; 0 means 16 MiB

	stderr func(line string) // each line of stderr, cleaned and cut; may be nil
	noise  func(line string) // lines of stdout that are not messages, a few per second; may be nil
}

// A process is a running server and the connection over its standard streams. All
// methods may be called concurrently.
type process struct {
	command
	cmd                   *exec.Cmd
	limitErr              error // why its limits could not be set
	stdin, stdout, errout *os.File
	tail                  tail  // end of stderr
	stray                 stray // lines of stdout that are not messages
	intake                intake

	connected chan struct{}        // holds a value once Connect was called
	writing   chan struct{}        // holds a value while a message is written
	messages  chan jsonrpc.Message // from readMessages to Read
	broken    chan error           // from Write to supervise

	exited     chan struct{} // the leader was reaped
	delivered  atomic.Int64  // number of messages
	stdoutDone chan struct{} // no message follows; readErr says why
	readErr    error
	stderrDone chan struct{}
	readers    chan struct{} // both readers have ended

	stopOnce, hurryOnce sync.Once
	stopping, hurrying  chan struct{} // closed by stop and hurry

	lostCh  chan struct{}
	lostErr error // set before lostCh is closed

	done     chan struct{} // the shutdown is complete
	closeErr error         // set before done is closed
}

// start runs the command. The process outlives ctx. After an error, nothing is left
// running or open.
func (c command) start(ctx context.Context) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	if c.maxMessage <= 0 {
		c.maxMessage = defaultMaxMessage
	}
	if c.env == nil {
		c.env = safeEnv(nil)
	}
	cmd, err := c.prepare()
	if err != nil {
		return nil, err
	}
	p := &process{
		command:    c,
		cmd:        cmd,
		connected:  make(chan struct{}, 1),
		writing:    make(chan struct{}, 1),
		messages:   make(chan jsonrpc.Message),
		broken:     make(chan error, 1),
		exited:     make(chan struct{}),
		stdoutDone: make(chan struct{}),
		stderrDone: make(chan struct{}),
		stopping:   make(chan struct{}),
		hurrying:   make(chan struct{}),
		lostCh:     make(chan struct{}),
		readers:    make(chan struct{}),
		done:       make(chan struct{}),
	}
	if err := p.spawn(); err != nil {
		return nil, err
	}
	go p.read()
	go p.supervise()
	if p.limitErr != nil {
		p.kill()
		return nil, fmt.Errorf("starting server %q: %w", p.name, p.limitErr)
	}
	return p, nil
}

// spawn starts the subprocess with pipes made here. Our ends of the pipes of os/exec
// have no deadlines, and os/exec closes them on its own.
func (p *process) spawn() error {
	var pipes [3][2]*os.File
	closeEnds := func(which int) {
		for _, pipe := range pipes {
			if pipe[which] != nil {
				pipe[which].Close()
			}
		}
	}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeEnds(0)
			closeEnds(1)
			return fmt.Errorf("starting server %q: %w", p.name, err)
		}
		pipes[i] = [2]*os.File{r, w} // index 0 is ours, 1 the server's
		if i == 0 {
			pipes[i] = [2]*os.File{w, r}
		}
	}
	p.stdin, p.stdout, p.errout = pipes[0][0], pipes[1][0], pipes[2][0]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0][1], pipes[1][1], pipes[2][1]
	err := p.run()
	closeEnds(1)
	if err != nil {
		closeEnds(0)
		return p.explainStart(err)
	}
	return nil
}

// run starts the subprocess and waits for it on a dedicated thread: Linux sends the
// parent-death signal when the thread that forked ends (prctl(2), PR_SET_PDEATHSIG),
// not when the program does.
func (p *process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		if err == nil { // its number cannot be reused before Wait
			p.limitErr = p.limits.set(p.cmd.Process.Pid)
		}
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the status is in ProcessState
			close(p.exited)
		}
	}()
	return <-started
}

// lost is closed when the connection has ended for any reason, including close.
func (p *process) lost() <-chan struct{} { return p.lostCh }

// err returns the reason as an *ensemble.ProcessError. It is nil before lost is closed,
// and if close or kill ended the connection.
func (p *process) err() error {
	select {
	case <-p.lostCh:
		return p.lostErr
	default:
		return nil
	}
}

// close shuts the server down as the protocol specifies: it closes stdin; after each
// grace period it sends SIGTERM, then SIGKILL, to the whole process group. When ctx
// ends, it sends SIGKILL immediately. When close returns, no process of the group, no
// goroutine and no file is left; an error means that a process survived SIGKILL. A
// further call waits for the first.
func (p *process) close(ctx context.Context) error {
	p.stop()
	if ctx.Err() != nil {
		p.hurry()
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.hurry()
		<-p.done
	}
	return p.closeErr
}

// kill closes without grace periods, for a server that could not be connected to.
func (p *process) kill() {
	p.stop()
	p.hurry()
	<-p.done
}

func (p *process) stop()  { p.stopOnce.Do(func() { close(p.stopping) }) }
func (p *process) hurry() { p.hurryOnce.Do(func() { close(p.hurrying) }) }

// supervise follows the process from its start to its end.
func (p *process) supervise() {
	defer close(p.done)
	p.lostErr = p.awaitLoss()
	close(p.lostCh)
	p.closeErr = p.shutDown()
	select {
	case <-p.readers: // everything that the group wrote has been read
	case <-time.After(settle): // a process that left the group holds the pipes
	}
	p.stdout.Close()
	p.errout.Close()
	<-p.readers
}

// read drains both output streams to their ends.
func (p *process) read() {
	var readers sync.WaitGroup
	readers.Go(p.readMessages)
	readers.Go(p.readStderr)
	readers.Wait()
	close(p.readers)
}

// awaitLoss waits until the connection has ended and returns the reason, or nil if it
// was closed on this side.
func (p *process) awaitLoss() error {
	var failure error
	select {
	case <-p.stopping:
		return nil
	case <-p.exited:
	case <-p.stdoutDone:
		failure = p.readErr
	case failure = <-p.broken:
	}
	if errors.Is(failure, errMessageTooLarge) || errors.Is(failure, errNotReading) {
		return p.lossFrom(failure)
	}
	if !p.settled() {
		return p.lossFrom(failure)
	}
	return p.lossFrom(p.readErr)
}

// settled waits for the exit status and the remaining output of a process that is
// ending, as long as messages still arrive, and reports whether it got everything.
func (p *process) settled() bool {
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	latest := time.Now().Add(maxSettle)
	delivered := p.delivered.Load()
	for _, end := range []<-chan struct{}{p.exited, p.stdoutDone, p.stderrDone} {
		for waiting := true; waiting; {
			select {
			case <-end:
				waiting = false
			case <-p.hurrying:
				return false
			case <-quiet.C:
				before := delivered
				delivered = p.delivered.Load()
				if delivered == before || time.Now().After(latest) {
					return false
				}
				quiet.Reset(settle)
			}
		}
	}
	return true
}

// shutDown follows the shutdown of the stdio transport (MCP 2025-11-25, basic/lifecycle
// § Shutdown), but for the process group instead of only its leader.
func (p *process) shutDown() error {
	// "First, closing the input stream to the child process (the server)".
	p.stdin.Close()
	// "Waiting for the server to exit, or sending SIGTERM if the server does
	// not exit within a reasonable time".
	if p.awaitExit(p.grace) && !p.groupAlive() {
		return nil
	}
	p.terminate()
	if p.awaitGone(p.grace, p.hurrying) {
		return nil
	}
	// "Sending SIGKILL if the server does not exit within a reasonable time
	// after SIGTERM".
	p.killGroup()
	if p.awaitGone(unkillable, nil) {
		return nil
	}
	return fmt.Errorf("server %q: process %d or a child of it is still there %s after SIGKILL", p.name, p.cmd.Process.Pid, unkillable)
}

// awaitExit reports whether the leader ended in time.
func (p *process) awaitExit(limit time.Duration) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return true
	case <-p.hurrying:
	case <-timeout.C:
	}
	return false
}

// awaitGone reports whether the leader and its group ended in time. The system has no
// notification for the end of a group, so awaitGone polls.
func (p *process) awaitGone(limit time.Duration, cut <-chan struct{}) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-p.exited:
	case <-cut:
		return false
	case <-timeout.C:
		return false
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.groupAlive() {
		select {
		case <-tick.C:
		case <-cut:
			return false
		case <-timeout.C:
			return false
		}
	}
	return true
}

// hasExited reports whether the leader was reaped.
func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

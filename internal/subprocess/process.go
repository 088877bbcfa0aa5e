// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultGrace        = 2 * time.Second
	defaultWriteTimeout = time.Minute

	// settle is how long a process that is ending may stay silent before the wait for
	// its exit status and output stops; maxSettle bounds that wait in all. The pipes
	// close before the exit status is known, and a grandchild may keep them open.
	settle    = time.Second
	maxSettle = 5 * time.Second
	// unkillable is how long closing waits after SIGKILL for a process that is in an
	// uninterruptible system call.
	unkillable = 5 * time.Second
)

// Command describes a server to run as a subprocess. Each callback is called from a
// goroutine of the process, one call at a time; while it blocks, the server's output is
// not read.
type Command struct {
	Name string   // name of the server, for errors
	Argv []string // Argv[0] is looked up in the PATH of Env
	Env  []string // complete; nil means SafeEnv(nil)
	Dir  string   // "" means the directory of this program

	Limits Limits
	// Grace bounds each step of closing; 0 means 2 s.
	Grace time.Duration
	// WriteTimeout bounds a write whose context has no deadline; 0 means 1 min.
	WriteTimeout time.Duration

	// Output reads stdout and returns the reason why no more messages follow. It calls
	// p.Delivered for each message, and p.Stray for each line that is not a message. It
	// returns soon after p is lost. Nil discards stdout.
	Output func(p *Process, stdout io.Reader) error
	// Stderr receives each line of stderr, cleaned and cut; may be nil.
	Stderr func(line string)
	// StrayLine receives the lines that were passed to Stray, cleaned and cut, a few
	// per second; may be nil.
	StrayLine func(line string)
}

// A Process is a running server. All methods may be called concurrently.
type Process struct {
	command               Command
	cmd                   *exec.Cmd
	limitErr              error // why its limits could not be set
	stdin, stdout, errout *os.File
	tail                  tail        // end of stderr
	stray                 stray       // lines of stdout that are not messages
	strayLog              lineLimiter // of the same lines; used by Output alone
	intake                intake

	writing chan struct{} // holds a value while a message is written
	broken  chan error    // from Write to supervise

	exited     chan struct{} // the leader was reaped
	delivered  atomic.Int64  // number of messages
	stdoutDone chan struct{} // no message follows; readErr says why
	readErr    error
	stderrDone chan struct{}
	readers    chan struct{} // both readers have ended

	stopOnce, forceOnce sync.Once
	stopping, forcing   chan struct{} // closed by Stop and forceClose

	lostCh  chan struct{}
	lostErr error // set before lostCh is closed

	done     chan struct{} // the shutdown is complete
	closeErr error         // set before done is closed
}

// Start runs the command. The process outlives ctx. After an error, nothing is left
// running or open.
func (c Command) Start(ctx context.Context) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Grace <= 0 {
		c.Grace = defaultGrace
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = defaultWriteTimeout
	}
	if c.Env == nil {
		c.Env = SafeEnv(nil)
	}
	if c.Output == nil {
		c.Output = discard
	}
	cmd, err := c.prepare()
	if err != nil {
		return nil, err
	}
	p := &Process{
		command:    c,
		cmd:        cmd,
		strayLog:   lineLimiter{report: c.StrayLine},
		writing:    make(chan struct{}, 1),
		broken:     make(chan error, 1),
		exited:     make(chan struct{}),
		stdoutDone: make(chan struct{}),
		stderrDone: make(chan struct{}),
		stopping:   make(chan struct{}),
		forcing:    make(chan struct{}),
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
		p.Kill()
		return nil, fmt.Errorf("starting server %q: %w", p.command.Name, p.limitErr)
	}
	return p, nil
}

func discard(_ *Process, stdout io.Reader) error {
	_, err := io.Copy(io.Discard, stdout)
	return cmp.Or(err, ErrStdoutClosed)
}

// spawn starts the subprocess with pipes made here. Our ends of the pipes of os/exec
// have no deadlines, and os/exec closes them on its own.
func (p *Process) spawn() error {
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
			return fmt.Errorf("starting server %q: %w", p.command.Name, err)
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
		return p.command.explainStart(p.cmd.Path, err)
	}
	return nil
}

// run starts the subprocess and waits for it on a dedicated thread: Linux sends the
// parent-death signal when the thread that forked ends (prctl(2), PR_SET_PDEATHSIG),
// not when the program does.
func (p *Process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		if err == nil { // its number cannot be reused before Wait
			p.limitErr = p.command.Limits.set(p.cmd.Process.Pid)
		}
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the status is in ProcessState
			close(p.exited)
		}
	}()
	return <-started
}

// Lost is closed when the connection has ended for any reason, including Close.
func (p *Process) Lost() <-chan struct{} { return p.lostCh }

// Err returns the reason as an *ensemble.ProcessError. It is nil before Lost is closed,
// and if Close or Kill ended the connection.
func (p *Process) Err() error {
	select {
	case <-p.lostCh:
		return p.lostErr
	default:
		return nil
	}
}

// Close shuts the server down as the protocol specifies: it closes stdin; after each
// grace period it sends SIGTERM, then SIGKILL, to the whole process group. When ctx
// ends, it sends SIGKILL immediately. When Close returns, no process of the group, no
// goroutine and no file is left; an error means that a process survived SIGKILL. A
// further call waits for the first.
func (p *Process) Close(ctx context.Context) error {
	p.Stop()
	if ctx.Err() != nil {
		p.forceClose()
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.forceClose()
		<-p.done
	}
	return p.closeErr
}

// Kill closes without grace periods, for a server that could not be connected to.
func (p *Process) Kill() {
	p.Stop()
	p.forceClose()
	<-p.done
}

// Stop starts the shutdown and does not wait for it.
func (p *Process) Stop() { p.stopOnce.Do(func() { close(p.stopping) }) }

// forceClose skips the grace periods of the shutdown.
func (p *Process) forceClose() { p.forceOnce.Do(func() { close(p.forcing) }) }

// supervise follows the process from its start to its end.
func (p *Process) supervise() {
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
func (p *Process) read() {
	var readers sync.WaitGroup
	readers.Go(p.readStdout)
	readers.Go(p.readStderr)
	readers.Wait()
	close(p.readers)
}

// readStdout passes stdout to the command's Output and, after the last message, drains
// it, so that a server that is asked to exit is not blocked.
func (p *Process) readStdout() {
	p.readErr = p.command.Output(p, p.stdout)
	p.strayLog.flush()
	close(p.stdoutDone)
	_, _ = io.Copy(io.Discard, p.stdout)
}

// Delivered records that a message of the server has arrived. It must be called by
// Output only.
func (p *Process) Delivered() { p.delivered.Add(1) }

// Stray records a line of stdout that is not a message. It must be called by Output
// only. The first lines are quoted in the error if the server delivers no message.
func (p *Process) Stray(line []byte) {
	p.strayLog.add(line)
	p.stray.add(line)
}

// awaitLoss waits until the connection has ended and returns the reason, or nil if it
// was closed on this side.
func (p *Process) awaitLoss() error {
	var failure error
	select {
	case <-p.stopping:
		return nil
	case <-p.exited:
	case <-p.stdoutDone:
		failure = p.readErr
	case failure = <-p.broken:
	}
	if errors.Is(failure, ErrMessageTooLarge) || errors.Is(failure, ErrNotReading) {
		return p.lossFrom(failure)
	}
	if !p.settled() {
		return p.lossFrom(failure)
	}
	return p.lossFrom(p.readErr)
}

// settled waits for the exit status and the remaining output of a process that is
// ending, as long as messages still arrive, and reports whether it got everything.
func (p *Process) settled() bool {
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	latest := time.Now().Add(maxSettle)
	delivered := p.delivered.Load()
	for _, end := range []<-chan struct{}{p.exited, p.stdoutDone, p.stderrDone} {
		for waiting := true; waiting; {
			select {
			case <-end:
				waiting = false
			case <-p.forcing:
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
func (p *Process) shutDown() error {
	// "First, closing the input stream to the child process (the server)".
	p.stdin.Close()
	// "Waiting for the server to exit, or sending SIGTERM if the server does
	// not exit within a reasonable time".
	if p.awaitExit(p.command.Grace) && !p.groupAlive() {
		return nil
	}
	p.terminate()
	if p.awaitGone(p.command.Grace, p.forcing) {
		return nil
	}
	// "Sending SIGKILL if the server does not exit within a reasonable time
	// after SIGTERM".
	p.killGroup()
	if p.awaitGone(unkillable, nil) {
		return nil
	}
	return fmt.Errorf("server %q: process %d or one of its children still exists %s after SIGKILL", p.command.Name, p.cmd.Process.Pid, unkillable)
}

// awaitExit reports whether the leader ended in time.
func (p *Process) awaitExit(limit time.Duration) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return true
	case <-p.forcing:
	case <-timeout.C:
	}
	return false
}

// awaitGone reports whether the leader and its group ended in time. The system has no
// notification for the end of a group, so awaitGone polls.
func (p *Process) awaitGone(limit time.Duration, cut <-chan struct{}) bool {
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
func (p *Process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

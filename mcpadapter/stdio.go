// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"go.uber.org/zap"
)

// CommandConnectTimeout is how long [Command] gives a server to start: its first start
// may install its package.
const CommandConnectTimeout = 30 * time.Second

// Command returns an ensemble with an MCP server that runs as a subprocess, with the
// default options except one. It is short for [ensemble.New] with [Stdio] and the
// ConnectTimeout [CommandConnectTimeout].
func Command(name, command string, args ...string) *ensemble.Ensemble {
	source := Stdio(append([]string{command}, args...), &StdioOptions{ClientOptions: ClientOptions{Server: name}})
	return ensemble.New(name, source, &ensemble.Options{ConnectTimeout: CommandConnectTimeout})
}

// Stdio returns the source of an MCP server that runs as a subprocess and communicates
// over its standard streams. command is the program and its arguments; each connection
// starts a new process. Open reports an invalid command.
func Stdio(command []string, options *StdioOptions) ensemble.Source {
	var o StdioOptions
	if options != nil {
		o = *options
	}
	name := "subprocess"
	if len(command) > 0 {
		name = filepath.Base(command[0])
	}
	s := &source{options: o.withDefaults(name), pinned: o.Protocol, inOrder: true, spawns: true}
	description := describe(command, o, s.options)
	s.dial = func(ctx context.Context) (link, error) {
		l, err := startProcess(ctx, description, s.options.MaxMessage)
		if err != nil {
			return nil, err // and not a nil *stdioLink
		}
		return l, nil
	}
	return s
}

func describe(argv []string, o StdioOptions, full ClientOptions) subprocess.Command {
	return subprocess.Command{
		Name:         full.Server,
		Argv:         slices.Clone(argv),
		Env:          subprocess.SafeEnv(o.Environment),
		Dir:          o.Directory,
		Grace:        o.Grace,
		Limits:       subprocess.Limits(o.Limits),
		WriteTimeout: wire.StallTimeout,
		Stderr: func(line string) {
			full.Logger.Debug("the server writes to stderr", logevent.StderrRead, zap.String("line", line))
		},
		StrayLine: func(line string) {
			full.Logger.Warn("a line on stdout is not a message", logevent.StdoutRefused, zap.String("line", line))
		},
	}
}

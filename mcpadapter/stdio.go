// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// CommandConnectTimeout is how long [Command] gives a server to start: its first start
// may install its package.
const CommandConnectTimeout = 30 * time.Second

// Command returns an ensemble with an MCP server that runs as a subprocess, with the
// default options. It is short for [ensemble.New] with [Stdio].
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
	s.dial = func(ctx context.Context) (link, error) { return description.dial(ctx) }
	return s
}

func describe(argv []string, o StdioOptions, full ClientOptions) command {
	return command{
		name:       full.Server,
		argv:       slices.Clone(argv),
		env:        safeEnv(o.Environment),
		dir:        o.Directory,
		grace:      o.Grace,
		limits:     o.Limits,
		maxMessage: full.MaxMessage,
		stderr: func(line string) {
			full.Logger.Debug("the server writes to stderr", event.StderrRead, zap.String("line", line))
		},
		noise: func(line string) {
			full.Logger.Warn("a line on stdout that is no message", event.StdoutRefused, zap.String("line", line))
		},
	}
}

// dial starts the process. It does not return a nil *process as a link.
func (c command) dial(ctx context.Context) (link, error) {
	p, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	return p, nil
}
